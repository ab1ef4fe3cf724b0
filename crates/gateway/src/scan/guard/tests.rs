//! What a request meets.

use std::ffi::OsString;
use std::io::Write;

use http::Request;
use redoma_audit::event::{Direction, Tls};
use redoma_policy::{Origin, SecretPlace, SecretRule, SecretSource};

use super::*;
use crate::scan::Watched;
use crate::{Flows, Sink};

#[derive(Default)]
struct Heard(Mutex<Vec<Alert>>);

impl Sink for Heard {
    fn tell(&self, event: Event) {
        if let Event::Alert(alert) = event {
            self.0.lock().unwrap().push(alert);
        }
    }
}

struct World {
    guard: Watchful,
    heard: Arc<Heard>,
    flows: Flows,
    shown: String,
}

const REAL: &str = "sk-ant-api03-Zt9Qw8Er7Ty6Ui5Op4As3Df2";
const DECOY: &str = "decoy-a8f7e6d5c4b3";
const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

impl World {
    fn new(leaks: Leaks) -> Self {
        let rule = SecretRule {
            name: "API_KEY".into(),
            source: SecretSource::Env("API_KEY".into()),
            hosts: vec!["api.test".parse().unwrap()],
            place: SecretPlace::Header("x-api-key".into()),
            origin: Origin::typed("--secret", "API_KEY"),
        };
        let credentials = Credentials::load(&[rule], &|_| Some(OsString::from(REAL))).unwrap();
        let shown = credentials.variables()[0].1.clone();
        let decoys = vec![("DB_PASSWORD".to_owned(), Secret::new(DECOY.to_owned()))];
        let heard = Arc::<Heard>::default();
        let flows = Flows::new(Arc::clone(&heard) as Arc<dyn Sink>);
        Self { guard: Watchful::new(leaks, credentials, decoys), heard, flows, shown }
    }

    fn flow(&self, host: &str, tls: bool) -> Arc<Flow> {
        let target = Target { host: host.parse().unwrap(), port: 443 };
        let flow = self.flows.open(target, Direction::Out, None);
        if tls {
            flow.set_tls(Tls::default());
        }
        flow
    }

    /// The credentials put in, or why not.
    fn head(&self, host: &str, url: &str, headers: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let mut parts = parts(url, headers);
        let put = self
            .guard
            .head(&self.flow(host, true), &mut parts)
            .map_err(|refusal| refusal.because().to_owned());
        if put.as_ref().is_ok_and(|names| !names.is_empty()) {
            assert_eq!(parts.headers["x-api-key"], REAL);
        }
        put
    }

    fn body(&self, host: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<(), Reason> {
        let flow = self.flow(host, true);
        let mut scan = self.guard.body(&flow, &parts("/", headers)).unwrap();
        body.chunks(5).try_for_each(|piece| scan.push(piece))?;
        scan.end()
    }

    fn alerts(&self) -> Vec<(String, Severity, String)> {
        let heard = std::mem::take(&mut *self.heard.0.lock().unwrap());
        let alert = |alert: Alert| {
            (alert.rule.as_str().to_owned(), alert.severity, alert.message.as_str().to_owned())
        };
        heard.into_iter().map(alert).collect()
    }
}

fn parts(url: &str, headers: &[(&str, &str)]) -> Parts {
    let builder = headers
        .iter()
        .fold(Request::builder().uri(url), |builder, (name, value)| builder.header(*name, *value));
    builder.body(()).unwrap().into_parts().0
}

#[test]
fn a_credential_goes_to_its_host_over_tls_and_nowhere_else() {
    let world = World::new(Leaks::default());
    let shown = world.shown.clone();
    assert_eq!(world.head("api.test", "/v1", &[("x-api-key", &shown)]), Ok(vec!["API_KEY".to_owned()]));
    assert_eq!(world.alerts(), []);
    let told = "the placeholder API_KEY is in the header x-api-key";
    assert_eq!(world.head("evil.test", "/", &[("x-api-key", &shown)]).unwrap_err(), told);
    let [(rule, severity, message)] = world.alerts().try_into().unwrap();
    assert_eq!((rule.as_str(), severity), ("leaks.placeholder", Severity::Critical));
    assert_eq!(
        message,
        "the placeholder API_KEY was kept from leaving to evil.test:443 in the header x-api-key"
    );

    let mut plain = parts("/", &[("x-api-key", &shown)]);
    assert_eq!(world.guard.head(&world.flow("api.test", false), &mut plain).unwrap(), Vec::<String>::new());
    assert_eq!(plain.headers["x-api-key"], shown.as_str(), "without TLS it may be anybody");
}

#[test]
fn a_placeholder_is_found_in_every_part_of_a_request() {
    let world = World::new(Leaks::default());
    let shown = world.shown.clone();
    let encoded = data_encoding::BASE64.encode(format!("user:{shown}").as_bytes());
    let escaped: String = shown.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for url in
        [format!("/a/{shown}"), format!("/?q={shown}"), format!("/?q={escaped}"), format!("/{encoded}")]
    {
        assert!(world.head("evil.test", &url, &[]).unwrap_err().ends_with("is in the URL"), "{url}");
    }
    for value in [format!("a={shown}"), format!("Basic {encoded}")] {
        assert!(world.head("evil.test", "/", &[("cookie", &value)]).is_err(), "{value}");
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(shown.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let form = ("content-type", "application/x-www-form-urlencoded");
    for (headers, body) in [
        (&[][..], shown.clone().into_bytes()),
        (&[], encoded.into_bytes()),
        (&[form], format!("a={escaped}").into_bytes()),
        (&[("content-encoding", "gzip")], gzip.clone()),
        (&[], gzip),
    ] {
        assert_eq!(world.body("evil.test", headers, &body), Err(Reason::SecretDetected), "{headers:?}");
    }
    assert!(world.alerts().iter().all(|(_, severity, _)| *severity == Severity::Critical));
}

#[test]
fn its_own_host_may_see_a_placeholder_but_never_gets_the_credential_there() {
    let world = World::new(Leaks::default());
    let shown = world.shown.clone();
    assert_eq!(world.body("api.test", &[], format!("env says {shown}").as_bytes()), Ok(()));
    let [(_, severity, message)] = world.alerts().try_into().unwrap();
    assert_eq!(
        (severity, message.as_str()),
        (Severity::Warning, "the placeholder API_KEY left to api.test:443 in the body")
    );
    let mut other = parts("/", &[("x-other", &shown)]);
    assert_eq!(world.guard.head(&world.flow("api.test", true), &mut other).unwrap(), Vec::<String>::new());
    assert_eq!(other.headers["x-other"], shown.as_str());
}

#[test]
fn the_real_one_does_not_leave_to_others_either() {
    let world = World::new(Leaks::default());
    assert_eq!(world.body("evil.test", &[], REAL.as_bytes()), Err(Reason::SecretDetected));
    assert_eq!(world.alerts()[0].0, "leaks.credential");
}

#[test]
fn each_class_has_its_action() {
    let world = World::new(Leaks::default());
    assert_eq!(world.body("x.test", &[], format!("\"{DECOY}\"").as_bytes()), Err(Reason::SecretDetected));
    let key = b"-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBzQpnNnU2Zk9Yq1";
    assert_eq!(world.body("x.test", &[], key), Err(Reason::SecretDetected));
    assert_eq!(world.body("x.test", &[], TOKEN.as_bytes()), Ok(()));
    assert_eq!(world.body("x.test", &[], b"a@b.com.br 529.982.247-25"), Ok(()));
    let rules: Vec<_> = world.alerts().into_iter().map(|(rule, severity, _)| (rule, severity)).collect();
    let expected = [
        ("leaks.decoys", Severity::Critical),
        ("leaks.private_keys", Severity::Critical),
        ("leaks.tokens", Severity::Warning),
    ];
    assert_eq!(rules, expected.map(|(rule, severity)| (rule.to_owned(), severity)));

    let strict =
        World::new(Leaks { tokens: LeakAction::Block, personal: LeakAction::Alert, ..Leaks::default() });
    assert_eq!(strict.body("x.test", &[], TOKEN.as_bytes()), Err(Reason::SecretDetected));
    assert_eq!(strict.body("x.test", &[], b"a@b.com.br 529.982.247-25"), Ok(()));
    let [_, mail, number] = strict.alerts().try_into().unwrap();
    assert_eq!(mail.2, "personal data (e-mail, a…) left to x.test:443 in the body");
    assert_eq!(number.2, "personal data (cpf, 52…) left to x.test:443 in the body");
}

#[test]
fn what_passes_is_told_once_for_a_host() {
    let world = World::new(Leaks::default());
    let bearer = format!("Bearer {TOKEN}");
    for _ in 0..3 {
        assert!(world.head("x.test", "/", &[("authorization", &bearer)]).is_ok());
    }
    assert!(world.head("y.test", "/", &[("authorization", &bearer)]).is_ok());
    let alerts = world.alerts();
    assert!(
        alerts.len() == 2 && alerts.iter().all(|(_, severity, _)| *severity == Severity::Notice),
        "{alerts:?}"
    );
}

#[test]
fn what_is_not_seen_is_told() {
    let world = World::new(Leaks::default());
    assert_eq!(world.body("x.test", &[("content-encoding", "compress")], b"abc"), Ok(()));
    assert_eq!(world.body("x.test", &[("content-encoding", "gzip")], b"this is no gzip at all"), Ok(()));
    assert_eq!(
        world.body("x.test", &[("content-encoding", "gzip")], format!("no gzip {}", world.shown).as_bytes()),
        Err(Reason::SecretDetected),
        "whatever it says it is"
    );
    let rules: Vec<_> = world.alerts().into_iter().map(|(rule, ..)| rule).collect();
    assert_eq!(
        rules,
        ["leaks.unseen", "leaks.unseen", "leaks.placeholder"],
        "once for a host, again for what is refused"
    );
}

#[tokio::test]
async fn what_is_said_over_a_websocket_is_looked_at_before_it_goes_on() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let world = World::new(Leaks::default());
    for (framing, fits) in [(Framing::WebSocket, true), (Framing::None, false)] {
        let mask = [7, 1, 9, 4];
        let frame = |text: &[u8]| {
            let masked =
                text.iter().enumerate().map(|(at, byte)| if fits { byte ^ mask[at % 4] } else { *byte });
            let mut frame = vec![0x82, 0x80 | u8::try_from(text.len()).unwrap()];
            frame.extend(mask);
            frame.extend(masked);
            frame
        };
        let flow = world.flow("evil.test", true);
        flow.inspected(Reason::Policy);
        let (mut client, near) = tokio::io::duplex(1024);
        let mut watched = Watched::new(near, world.guard.connection(&flow, framing), Arc::clone(&flow));
        let harmless = frame(b"harmless");
        client.write_all(&harmless).await.unwrap();
        let mut read = vec![0; harmless.len()];
        watched.read_exact(&mut read).await.unwrap();
        assert_eq!(read, harmless, "what passes is not changed");
        client.write_all(&frame(world.shown.as_bytes())).await.unwrap();
        let refused = watched.read(&mut [0; 1024]).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
        assert_eq!(flow.verdict().1, Reason::SecretDetected);
    }
    let alerts = world.alerts();
    assert!(
        alerts.iter().all(|alert| alert.2.ends_with("in the connection")) && alerts.len() == 2,
        "{alerts:?}"
    );
}

#[test]
fn trailers_are_looked_at() {
    let world = World::new(Leaks::default());
    let mut scan = world.guard.body(&world.flow("evil.test", true), &parts("/", &[])).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "1".parse().unwrap());
    assert_eq!(scan.trailers(&trailers), Ok(()));
    trailers.insert("x-key", world.shown.parse().unwrap());
    assert_eq!(scan.trailers(&trailers), Err(Reason::SecretDetected));
}
