use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;

use tempfile::TempDir;

use super::*;
use crate::Secret;
use crate::tape::Tape;

/// A registry that says what a test wants. It sees each request's line and headers, and answers with status line, headers and body.
struct Liar {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

type Answer = (&'static str, String, Vec<u8>);

impl Liar {
    fn new(answer: impl Fn(&str, &str) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, own) = (Arc::clone(&asked), address.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let request = request(&stream);
                let (status, headers, body) = answer(&request, &own);
                seen.lock().unwrap().push(request);
                let length = if headers.contains("length") {
                    String::new()
                } else {
                    format!("content-length: {}\r\n", body.len())
                };
                let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{length}{headers}\r\n");
                // A client that has heard enough is gone.
                drop((&stream).write_all(head.as_bytes()).and_then(|()| (&stream).write_all(&body)));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut text = String::new();
    while reader.read_line(&mut text).is_ok_and(|count| count > 2) {}
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    text + &String::from_utf8(body).unwrap()
}

fn fine(body: impl Into<Vec<u8>>) -> Answer {
    ("200 OK", String::new(), body.into())
}

/// A whole image: what is said for each path.
struct Honest {
    manifest: Vec<u8>,
    config: Vec<u8>,
    layer: Vec<u8>,
}

impl Honest {
    fn new() -> Self {
        let layer = Tape::default().file("a", b"1").end();
        let config = format!(r#"{{"rootfs":{{"diff_ids":["{}"]}}}}"#, Digest::of(&layer)).into_bytes();
        let blob = |bytes: &[u8]| {
            serde_json::json!({ "mediaType": "application/vnd.oci.image.layer.v1.tar",
            "digest": Digest::of(bytes), "size": bytes.len() })
        };
        let manifest =
            serde_json::json!({ "schemaVersion": 2, "config": blob(&config), "layers": [blob(&layer)] });
        Self { manifest: manifest.to_string().into_bytes(), config, layer }
    }

    fn answer(&self, request: &str) -> Answer {
        let path = request.split(' ').nth(1).unwrap();
        let is_blob = |bytes: &[u8]| path == format!("/v2/a/blobs/{}", Digest::of(bytes));
        match path {
            "/v2/a/manifests/1" => fine(self.manifest.clone()),
            _ if is_blob(&self.config) => fine(self.config.clone()),
            _ if is_blob(&self.layer) => fine(self.layer.clone()),
            _ => ("404 Not Found", String::new(), Vec::new()),
        }
    }
}

fn fetch(registry: &Liar, credentials: Credentials) -> Result<Vec<Blob>, Error> {
    let home = TempDir::new().unwrap();
    let images = Images::open(home.path()).unwrap();
    let reference: Reference = format!("{}/a:1", registry.address).parse().unwrap();
    let fetched =
        images.fetch(&reference, credentials, &Limits::default(), &mut |_| {}, &AtomicBool::new(false));
    fetched.map(|fetched| fetched.blobs.clone())
}

fn refused(answer: impl Fn(&str, &str) -> Answer + Send + 'static) -> Error {
    fetch(&Liar::new(answer), Credentials::Anonymous).unwrap_err()
}

fn ana() -> Credentials {
    Credentials::Basic { user: "ana".into(), password: Secret::new("sesame".into()) }
}

/// One that lets in whoever shows the token `t`, which is to be had at `realm`.
fn guarded(realm: impl Fn(&str) -> String + Send + 'static) -> Liar {
    let honest = Honest::new();
    Liar::new(move |request, own| {
        if request.starts_with("GET /token?") || request.starts_with("POST /token") {
            return fine(r#"{"token":"t"}"#);
        }
        if request.contains("authorization: Bearer t\r\n") {
            return honest.answer(request);
        }
        let challenge = format!("www-authenticate: Bearer realm=\"{}\",service=\"s\"\r\n", realm(own));
        ("401 Unauthorized", challenge, Vec::new())
    })
}

#[test]
fn a_token_is_got_with_the_password_and_the_password_goes_nowhere_else() {
    let registry = guarded(|own| format!("http://{own}/token"));
    assert_eq!(fetch(&registry, ana()).unwrap().len(), 1);
    let asked = registry.asked();
    let basic: Vec<_> = asked.iter().filter(|request| request.contains("Basic YW5hOnNlc2FtZQ==")).collect();
    assert!(
        basic.len() == 1 && basic[0].starts_with("GET /token?service=s&scope=repository%3Aa%3Apull "),
        "{basic:?}"
    );
    assert_eq!(asked.iter().filter(|request| request.contains("/token")).count(), 1);
}

#[test]
fn nobody_gets_a_token_as_well_and_an_identity_is_exchanged_for_one() {
    let registry = guarded(|own| format!("http://{own}/token"));
    assert!(fetch(&registry, Credentials::Anonymous).is_ok());
    assert!(fetch(&registry, Credentials::Identity(Secret::new("id/1".into()))).is_ok());
    let posted = registry.asked().into_iter().find(|request| request.starts_with("POST /token")).unwrap();
    assert!(
        posted.contains("grant_type=refresh_token") && posted.contains("refresh_token=id%2F1"),
        "{posted}"
    );
}

#[test]
fn a_password_does_not_go_where_others_can_listen() {
    let registry = guarded(|_| "http://auth.example.com/token".into());
    assert!(matches!(fetch(&registry, ana()), Err(Error::Insecure { what: "a password", .. })));
    let registry = guarded(|_| "file:///etc/passwd".into());
    assert!(matches!(fetch(&registry, ana()), Err(Error::Insecure { .. })));
}

#[test]
fn a_redirection_is_followed_but_not_out_of_encryption() {
    let honest = Honest::new();
    let follow = Liar::new(move |request, own| match request.strip_prefix("GET /elsewhere") {
        Some(rest) => honest.answer(&format!("GET {rest}")),
        None if request.contains("/blobs/") => {
            let location =
                format!("location: http://{own}/elsewhere{}\r\n", request.split(' ').nth(1).unwrap());
            ("307 Temporary Redirect", location, Vec::new())
        }
        None => honest.answer(request),
    });
    assert_eq!(fetch(&follow, Credentials::Anonymous).unwrap().len(), 1);
    let out =
        refused(|_, _| ("307 Temporary Redirect", "location: http://example.com/\r\n".into(), Vec::new()));
    assert!(out.to_string().ends_with("it redirects to a place that is not encrypted"), "{out}");
    let round = refused(|_, own| ("302 Found", format!("location: http://{own}/\r\n"), Vec::new()));
    assert!(round.to_string().ends_with("it redirects without end"), "{round}");
}

#[test]
fn an_answer_without_end_ends_at_its_limit() {
    let endless =
        |_: &str, _: &str| ("200 OK", "content-length: 99999999999\r\n".to_owned(), vec![b' '; 5 << 20]);
    assert!(matches!(refused(endless), Error::Limit { what: "the size of a manifest", .. }));
    let honest = Honest::new();
    let long_layer = move |request: &str, _: &str| match honest.answer(request) {
        (_, _, body) if body == honest.layer => fine(vec![0; 1 << 20]),
        other => other,
    };
    assert!(matches!(refused(long_layer), Error::Size { .. }));
}

#[test]
fn what_is_not_what_was_asked_for_is_refused() {
    let honest = Honest::new();
    let wrong_config = move |request: &str, _: &str| match honest.answer(request) {
        (_, _, body) if body == honest.config => fine(honest.config.to_ascii_uppercase()),
        other => other,
    };
    assert!(matches!(refused(wrong_config), Error::Content { what: "the configuration", .. }));
    let registry = Liar::new(|_, _| fine(Honest::new().manifest));
    let home = TempDir::new().unwrap();
    let images = Images::open(home.path()).unwrap();
    let pinned: Reference = format!("{}/a@{}", registry.address, Digest::of(b"other")).parse().unwrap();
    let (limits, cancel) = (Limits::default(), AtomicBool::new(false));
    let fetched = images.fetch(&pinned, Credentials::Anonymous, &limits, &mut |_| {}, &cancel);
    assert!(matches!(fetched, Err(Error::Content { what: "the manifest", .. })));
}

#[test]
fn a_refusal_is_told_in_the_registrys_own_words() {
    let busy = refused(|_, _| {
        ("429 Too Many Requests", String::new(), br#"{"errors":[{"message":"pull rate limit"}]}"#.to_vec())
    });
    assert!(busy.to_string().ends_with("answered 429: pull rate limit"), "{busy}");
    assert!(matches!(refused(|_, _| ("404 Not Found", String::new(), Vec::new())), Error::NotFound { .. }));
    assert!(matches!(
        refused(|_, _| ("401 Unauthorized", String::new(), Vec::new())),
        Error::Unauthorized { .. }
    ));
    assert!(matches!(refused(|_, _| fine("<html>")), Error::Document { .. }));
}

#[test]
fn whoever_asks_to_stop_is_heard_while_nothing_comes() {
    // Nobody accepts: the connection is made by the kernel, and nothing is ever said.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = TempDir::new().unwrap();
    let images = Images::open(home.path()).unwrap();
    let reference: Reference = format!("{}/a:1", listener.local_addr().unwrap()).parse().unwrap();
    let cancel = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0]).unwrap();
            cancel.store(true, Ordering::Relaxed);
            drop(stream.read_to_end(&mut Vec::new()));
        });
        let fetched =
            images.fetch(&reference, Credentials::Anonymous, &Limits::default(), &mut |_| {}, &cancel);
        assert!(matches!(fetched, Err(Error::Cancelled)));
    });
    assert!(images.files("staging").unwrap().is_empty());
}
