//! Loaded, shown as placeholders, and put in where they belong.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;

use data_encoding::BASE64;
use http::Request;
use http::request::Parts;
use redoma_policy::{Origin, SecretRule, SecretSource};

use super::*;
use crate::Target;

const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

fn rule(name: &str, source: SecretSource, place: SecretPlace) -> SecretRule {
    let hosts = vec!["api.test".parse().unwrap(), "*.cloud.test".parse().unwrap()];
    SecretRule { name: name.into(), source, hosts, place, origin: Origin::typed("--secret", name) }
}

fn env(name: &str) -> SecretSource {
    SecretSource::Env(name.into())
}

fn variable(name: &str) -> Option<OsString> {
    Some(match name {
        "TOKEN" => TOKEN.into(),
        "LINES" => "a\nb".into(),
        "BYTES" => OsString::from_vec(vec![0xff, 0xfe]),
        "EMPTY" => "".into(),
        "ID" => "AKIAIOSFODNN7REALKEY".into(),
        _ => return None,
    })
}

fn load(source: SecretSource, place: SecretPlace) -> Result<Credentials, SecretError> {
    Credentials::load(&[rule("SHOWN", source, place)], &variable)
}

fn with(place: SecretPlace) -> (Credentials, String) {
    let credentials = load(env("TOKEN"), place).unwrap();
    let shown = credentials.variables()[0].1.clone();
    (credentials, shown)
}

fn target(host: &str) -> Target {
    Target { host: host.parse().unwrap(), port: 443 }
}

fn request(url: &str, headers: &[(&str, String)]) -> Parts {
    let mut request = Request::builder().uri(url);
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    request.body(()).unwrap().into_parts().0
}

fn header<'a>(parts: &'a Parts, name: &str) -> &'a str {
    parts.headers[name].to_str().unwrap()
}

#[test]
fn nothing_shows_a_secret() {
    let secret = Secret::new(TOKEN.to_owned());
    assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "[secret] [secret] Some([secret])");
    let credentials = load(env("TOKEN"), SecretPlace::Headers).unwrap();
    assert!(!format!("{credentials:?}").contains("16C7e42F"));
}

#[test]
fn credentials_are_loaded_from_where_they_are() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{TOKEN}").unwrap();
    let words = ["sh", "-c", &format!("echo {TOKEN}")].map(str::to_owned).to_vec();
    let sources = [env("TOKEN"), SecretSource::File(file.path().to_owned()), SecretSource::Command(words)];
    for source in sources {
        let credentials = load(source, SecretPlace::Headers).unwrap();
        assert_eq!(credentials.all[0].real.expose(), TOKEN);
        let [(name, shown)] = credentials.variables().try_into().unwrap();
        assert!(name == "SHOWN" && shown != TOKEN && shown.starts_with("ghp_") && shown.len() == TOKEN.len());
    }
    let absent = load(env("UNSET"), SecretPlace::Headers).unwrap();
    assert!(absent.is_empty() && absent.absent() == ["SHOWN"]);
}

#[test]
fn what_cannot_be_had_or_used_is_said() {
    let failed = |source, place| load(source, place).unwrap_err().to_string();
    let headers = || SecretPlace::Headers;
    assert!(failed(env("LINES"), headers()).contains("several lines, or has"));
    assert!(failed(env("BYTES"), headers()).contains("not UTF-8"));
    assert!(
        failed(SecretSource::File("/nowhere".into()), headers()).contains("cannot be read from \"/nowhere\"")
    );
    assert!(failed(SecretSource::File("/dev/zero".into()), headers()).contains("no regular file"));
    let command = |words: &[&str]| SecretSource::Command(words.iter().map(ToString::to_string).collect());
    assert!(failed(command(&["false"]), headers()).contains("\"false\" gave nothing"));
    assert!(failed(command(&["true"]), headers()).contains("is empty, in the command true"));
    assert!(load(env("EMPTY"), headers()).unwrap().is_empty());
    let aws = SecretPlace::Aws { access_key_id: "UNSET".into(), session_token: "UNSET".into() };
    assert!(failed(env("TOKEN"), aws).contains("the variable UNSET with the key's id is not set"));
}

#[test]
fn a_header_gets_the_credential_on_its_host_only() {
    let (credentials, shown) = with(SecretPlace::Header("authorization".into()));
    for scheme in ["Bearer ", "token ", ""] {
        let mut parts =
            request("/x", &[("authorization", format!("{scheme}{shown}")), ("x-other", shown.clone())]);
        for (host, names) in [("other.test", 0), ("test", 0), ("xapi.test", 0), ("api.test", 1)] {
            let put = credentials.apply(&mut parts, &target(host), Put::Real).unwrap();
            assert_eq!(put.len(), names, "{host}");
        }
        assert_eq!(header(&parts, "authorization"), format!("{scheme}{TOKEN}"));
        assert!(parts.headers["authorization"].is_sensitive());
        assert_eq!(header(&parts, "x-other"), shown, "another header is not its place");
    }
    let (credentials, shown) = with(SecretPlace::Headers);
    let mut parts = request("/x", &[("x-any", shown.clone()), ("cookie", format!("a={shown}; b=c"))]);
    assert_eq!(credentials.apply(&mut parts, &target("a.cloud.test"), Put::Real).unwrap(), ["SHOWN"]);
    assert_eq!((header(&parts, "x-any"), header(&parts, "cookie")), (TOKEN, &*format!("a={TOKEN}; b=c")));
}

#[test]
fn a_query_gets_it_under_its_key() {
    let (credentials, shown) = with(SecretPlace::Query("key".into()));
    let mut parts = request(&format!("https://api.test/a/{shown}?q=1&key={shown}&other={shown}&key"), &[]);
    credentials.apply(&mut parts, &target("api.test"), Put::Real).unwrap();
    assert_eq!(
        parts.uri.to_string(),
        format!("https://api.test/a/{shown}?q=1&key={TOKEN}&other={shown}&key")
    );
}

#[test]
fn basic_authentication_gets_it_as_the_password() {
    let basic = |user: &str, password: &str| {
        format!("Basic {}", BASE64.encode(format!("{user}:{password}").as_bytes()))
    };
    let apply = |place, sent: String| {
        let (credentials, shown) = with(place);
        let mut parts = request("/", &[("authorization", sent.replace("{shown}", &shown))]);
        let sent = parts.headers["authorization"].to_str().unwrap().replace("Basic ", "");
        let plain = String::from_utf8(BASE64.decode(sent.as_bytes()).unwrap()).unwrap();
        let swapped = BASE64.encode(plain.replace("SHOWN", &shown).as_bytes());
        parts.headers.insert("authorization", format!("basic {swapped}").parse().unwrap());
        credentials.apply(&mut parts, &target("api.test"), Put::Real).unwrap();
        header(&parts, "authorization").to_owned()
    };
    let any = || SecretPlace::Basic(None);
    assert_eq!(apply(any(), basic("me", "SHOWN")), basic("me", TOKEN));
    assert_eq!(apply(any(), basic("SHOWN", "")), basic(TOKEN, ""));
    assert_eq!(apply(SecretPlace::Basic(Some("me".into())), basic("me", "SHOWN")), basic("me", TOKEN));
    assert_eq!(apply(SecretPlace::Headers, basic("me", "SHOWN")), basic("me", TOKEN));
    let other = apply(SecretPlace::Basic(Some("you".into())), basic("me", "SHOWN"));
    assert!(
        other.starts_with("basic ") && !other.contains(&BASE64.encode(TOKEN.as_bytes())),
        "another user's"
    );
}

#[test]
fn nothing_in_place_of_it_leaves_no_placeholder_where_it_belongs() {
    let (credentials, shown) = with(SecretPlace::Headers);
    let mut parts = request("/", &[("authorization", format!("Bearer {shown}"))]);
    credentials.apply(&mut parts, &target("api.test"), Put::Nothing).unwrap();
    assert_eq!(header(&parts, "authorization"), "Bearer ");
}
