//! Against the values that AWS publishes.

use http::Request;

use super::*;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const S3_SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn signer(id: &'static str, secret: &'static str) -> Signer<'static> {
    let token = Some(Swap { from: "token-of-the-placeholder", to: "token-of-the-key" });
    Signer {
        id: Swap { from: "AKIDPLACEHOLDER", to: id },
        token,
        secret: Swap { from: "placeholder", to: secret },
    }
}

fn parts(url: &str, headers: &[(&str, &str)]) -> Parts {
    let builder = headers
        .iter()
        .fold(Request::builder().uri(url), |builder, (name, value)| builder.header(*name, *value));
    builder.body(()).unwrap().into_parts().0
}

/// Signs with the placeholder, as a client inside does, and has it signed again.
fn again(
    mut parts: Parts,
    scope: &str,
    signed: &str,
    payload: &str,
    path: fn(&str) -> String,
    signer: &Signer<'_>,
) -> String {
    let date = parts.headers["x-amz-date"].to_str().unwrap().to_owned();
    let pretended = Signature::new(Place::Header, &date, scope, signed, "");
    let hex =
        sign("placeholder", &date, scope, &canonical(&parts, &pretended, path(parts.uri.path()), payload));
    let value = format!(
        "AWS4-HMAC-SHA256 Credential=AKIDPLACEHOLDER/{scope}, SignedHeaders={signed}, Signature={hex}"
    );
    parts.headers.insert("authorization", value.parse().unwrap());
    let found = find(&parts, "AKIDPLACEHOLDER").unwrap().unwrap();
    sign_again(&mut parts, &found, signer).unwrap();
    parts.headers["authorization"].to_str().unwrap().to_owned()
}

#[test]
fn the_published_signatures_are_made() {
    let signer = signer("AKIDEXAMPLE", SECRET);
    let date = ("x-amz-date", "20150830T123600Z");
    let vanilla = parts("https://example.amazonaws.com/", &[("host", "example.amazonaws.com"), date]);
    let scope = "20150830/us-east-1/service/aws4_request";
    assert_eq!(
        again(vanilla, scope, "host;x-amz-date", EMPTY, PATHS[0], &signer),
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, \
         Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
    );
    // With the host in HTTP/2's own place.
    let kind = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");
    let users = parts("https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", &[kind, date]);
    let scope = "20150830/us-east-1/iam/aws4_request";
    let users = again(users, scope, "content-type;host;x-amz-date", EMPTY, PATHS[0], &signer);
    assert!(users.ends_with("=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"), "{users}");
}

#[test]
fn the_published_signature_of_an_object_is_made() {
    let headers = [
        ("host", "examplebucket.s3.amazonaws.com"),
        ("range", "bytes=0-9"),
        ("x-amz-content-sha256", EMPTY),
        ("x-amz-date", "20130524T000000Z"),
    ];
    let signed = "host;range;x-amz-content-sha256;x-amz-date";
    let signer = signer("AKIAIOSFODNN7EXAMPLE", S3_SECRET);
    let made = again(
        parts("/test.txt", &headers),
        "20130524/us-east-1/s3/aws4_request",
        signed,
        EMPTY,
        PATHS[0],
        &signer,
    );
    assert!(made.ends_with("=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"), "{made}");
}

#[test]
fn the_published_signature_of_a_url_is_made() {
    let query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDPLACEHOLDER%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
                 &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host";
    let mut parts = parts(&format!("/test.txt?{query}"), &[("host", "examplebucket.s3.amazonaws.com")]);
    let scope = "20130524/us-east-1/s3/aws4_request";
    let pretended = Signature::new(Place::Query, "20130524T000000Z", scope, "host", "");
    let hex = sign(
        "placeholder",
        "20130524T000000Z",
        scope,
        &canonical(&parts, &pretended, "/test.txt".into(), UNSIGNED),
    );
    set_query(&mut parts, &format!("{query}&X-Amz-Signature={hex}")).unwrap();
    let found = find(&parts, "AKIDPLACEHOLDER").unwrap().unwrap();
    sign_again(&mut parts, &found, &signer("AKIAIOSFODNN7EXAMPLE", S3_SECRET)).unwrap();
    let url = parts.uri.to_string();
    assert!(
        url.contains("X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&"),
        "{url}"
    );
    assert!(url.ends_with("=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"), "{url}");
}

#[test]
fn paths_are_signed_as_the_client_signed_them() {
    let signer = signer("AKIDEXAMPLE", SECRET);
    for path in PATHS {
        let headers = [("host", "x.test"), ("x-amz-date", "20150830T123600Z")];
        let parts = parts("/a%20b/c%3Ad/./e?z=1&a=%2Fx&b", &headers);
        let scope = "20150830/us-east-1/x/aws4_request";
        let made = again(parts, scope, "host;x-amz-date", EMPTY, path, &signer);
        assert!(made.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{made}");
    }
}

#[test]
fn a_temporary_key_brings_its_token() {
    let headers = [
        ("host", "x.test"),
        ("x-amz-date", "20150830T123600Z"),
        ("x-amz-content-sha256", UNSIGNED),
        ("x-amz-security-token", "token-of-the-placeholder"),
    ];
    let (mut inside, scope) = (parts("/", &headers), "20150830/us-east-1/x/aws4_request");
    let pretended = Signature::new(Place::Header, "20150830T123600Z", scope, "host;x-amz-security-token", "");
    let hex =
        sign("placeholder", "20150830T123600Z", scope, &canonical(&inside, &pretended, "/".into(), UNSIGNED));
    let value = format!(
        "AWS4-HMAC-SHA256 Credential=AKIDPLACEHOLDER/{scope},SignedHeaders=host;x-amz-security-token,Signature={hex}"
    );
    inside.headers.insert("authorization", value.parse().unwrap());
    let found = find(&inside, "AKIDPLACEHOLDER").unwrap().unwrap();
    sign_again(&mut inside, &found, &signer("AKIDEXAMPLE", SECRET)).unwrap();
    assert_eq!(inside.headers["x-amz-security-token"], "token-of-the-key");
    let right =
        sign(SECRET, "20150830T123600Z", scope, &canonical(&inside, &pretended, "/".into(), UNSIGNED));
    assert!(inside.headers["authorization"].to_str().unwrap().ends_with(&right));
}

#[test]
fn what_cannot_be_signed_again_is_refused_with_the_reason() {
    let refused = |value: &str, hash: &str| {
        let headers =
            [("x-amz-date", "20150830T123600Z"), ("x-amz-content-sha256", hash), ("authorization", value)];
        let mut parts = parts("/", &headers);
        let found = find(&parts, "AKIDPLACEHOLDER")
            .and_then(|found| sign_again(&mut parts, &found.unwrap(), &signer("AKIDEXAMPLE", SECRET)));
        found.unwrap_err().because().to_owned()
    };
    let whole = "AWS4-HMAC-SHA256 Credential=AKIDPLACEHOLDER/20150830/r/s/aws4_request, SignedHeaders=host, Signature=00";
    assert!(
        refused(whole, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD").contains("each piece of its body is signed")
    );
    assert!(refused(whole, EMPTY).contains("does not belong to this request"));
    assert!(refused("AWS4-HMAC-SHA256 Credential=AKIDPLACEHOLDER/x", EMPTY).contains("not complete"));
    assert!(refused(&whole.replace("HMAC", "ECDSA-P256"), EMPTY).contains("not of the kind"));
    let other = parts("/", &[("authorization", "AWS4-HMAC-SHA256 Credential=AKIDOTHER/x/r/s/aws4_request")]);
    assert!(find(&other, "AKIDPLACEHOLDER").unwrap().is_none());
}
