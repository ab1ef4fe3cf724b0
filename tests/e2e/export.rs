//! What went over the network, in forms that other programs read, and what those programs make of it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use redoma_tests::{Home, Tier, World, requires, skip};
use serde_json::Value;

/// Where `cargo xtask setup` puts what validates formats.
const VALIDATORS: &str = "/opt/redoma-test/node/node_modules";

/// One request that is looked into with a body both ways, one connection that passes unseen, and one that is blocked.
const TRAFFIC: &str = "
curl --silent --show-error --data 'colour=red' 'https://api.example/paint?a=b%20c' >/dev/null
curl --silent https://other.example/ >/dev/null
/usr/bin/python3 -c \"import socket; s = socket.create_connection(('api.example', 25), 10); s.recv(100)\"
";

fn traffic(world: &World, home: &Home, tier: Tier, options: &[&str]) {
    let project = home.project_for(tier);
    let allowed = ["--allow", "api.example,api.example:25"];
    let _ran = world.run(&project, tier, &[&allowed, options].concat(), ["sh", "-c", TRAFFIC]).run().ok();
}

fn export(home: &Home, format: &str) -> String {
    home.folder("reader").redoma(["net", "export", "--format", format]).run().ok().out()
}

#[test]
fn a_har_is_valid_and_has_no_entry_for_what_was_not_seen() {
    requires!("python3", "curl", "ip", "node");
    if !Path::new(VALIDATORS).join("har-validator").exists() {
        return skip("export", "har-validator is missing");
    }
    let (world, home) = (World::new(), Home::new());
    traffic(&world, &home, Tier::Full, &[]);
    let text = export(&home, "har");
    let har: Value = serde_json::from_str(&text).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{text}");
    assert_eq!(entries[0]["request"]["url"], "https://api.example/paint?a=b%20c");
    assert_eq!(entries[0]["request"]["postData"]["text"], "colour=red");
    let address = entries[0]["serverIPAddress"].as_str().unwrap();
    assert!(["93.184.1.1", "2600:1f00::1"].contains(&address), "{address}");
    assert!(entries[0]["_process"]["path"].as_str().unwrap().ends_with("curl"));
    let unseen = har["log"]["_flows"].as_array().unwrap().iter();
    let mut unseen: Vec<_> = unseen.map(|flow| flow["visibility"].as_str().unwrap()).collect();
    unseen.sort_unstable();
    assert_eq!(unseen, ["blocked", "opaque"]);
    assert_eq!(validate(&text), "valid");
    // The twin: the validator would say so.
    assert_ne!(validate(&text.replace("startedDateTime", "started")), "valid");
}

/// What the validator says.
fn validate(har: &str) -> String {
    const SCRIPT: &str = "
const { har } = require('har-validator');
const text = require('fs').readFileSync(process.argv[1], 'utf8');
har(JSON.parse(text)).then(() => console.log('valid'), (error) => console.log(JSON.stringify(error.errors)));
";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, har).unwrap();
    let ran =
        Command::new("node").args(["-e", SCRIPT]).arg(file.path()).env("NODE_PATH", VALIDATORS).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

#[test]
fn jsonl_has_the_lines_of_the_record_that_are_about_the_network() {
    requires!("python3", "curl", "ip");
    let (world, home) = (World::new(), Home::new());
    traffic(&world, &home, Tier::Full, &[]);
    let exported = export(&home, "jsonl");
    let record = home.folder("reader").redoma(["log", "--json"]).run().ok().out();
    assert!(exported.lines().all(|line| record.lines().any(|known| known == line)));
    let kinds = |text: &str, kind: &str| {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["kind"] == kind).count()
    };
    for kind in ["flow", "exchange", "dns"] {
        assert_eq!(kinds(&exported, kind), kinds(&record, kind), "{kind}");
        assert!(kinds(&exported, kind) > 0, "{kind}");
    }
    assert_eq!(kinds(&exported, "session_start"), 0);
}

#[test]
fn a_file_that_is_written_is_its_owners_only() {
    requires!("python3", "curl", "ip");
    let (world, home) = (World::new(), Home::new());
    traffic(&world, &home, Tier::Full, &[]);
    let reader = home.folder("reader");
    let file = reader.path().join("out.har");
    std::fs::write(&file, "before").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let _ran = reader.redoma(["net", "export", "--format", "har", "-o", "out.har"]).run().ok();
    assert_eq!(mode(&file), 0o600);
    let har: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(har["log"]["version"], "1.2");
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_capture_is_decrypted_by_tshark_and_has_what_passed_unseen() {
    requires!("python3", "curl", "ip", "tshark");
    let world = World::new();
    for tier in Tier::ALL {
        let home = Home::new();
        traffic(&world, &home, tier, &["--capture"]);
        let reader = home.folder("reader");
        let file = reader.path().join("out.pcapng");
        let arguments = ["net", "export", "--format", "pcapng", "-o", "out.pcapng"];
        let _ran = reader.redoma(arguments).run().ok();
        assert_eq!(mode(&file), 0o600);
        let requests =
            tshark(&file, "http2.headers.path or http.request", &["http.request.uri", "http2.headers.path"]);
        assert!(requests.contains("/paint?a=b%20c"), "{tier:?} {requests}");
        // What redoma said in the server's place was said over the wire too.
        let refused = tshark(
            &file,
            "http.response or http2.headers.status",
            &["http.response.code", "http2.headers.status"],
        );
        assert!(refused.contains("403") && refused.contains("200"), "{tier:?} {refused}");
        let unseen = tshark(&file, "tcp.port == 25 and tcp.len > 0", &["tcp.payload"]);
        assert!(unseen.contains("3232302072656164790d0a"), "{tier:?} `220 ready`: {unseen}");
        assert_eq!(tshark(&file, "tcp.analysis.flags or _ws.malformed", &["frame.number"]), "", "{tier:?}");
    }
}

fn tshark(file: &Path, filter: &str, fields: &[&str]) -> String {
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let ran =
        Command::new("tshark").arg("-r").arg(file).args(["-Y", filter, "-T", "fields"]).args(fields).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn nothing_of_the_wire_is_kept_unless_it_was_asked_for() {
    requires!("python3", "curl", "ip");
    let (world, home) = (World::new(), Home::new());
    traffic(&world, &home, Tier::Full, &[]);
    let reader = home.folder("reader");
    std::fs::write(reader.path().join("kept"), "before").unwrap();
    let ran = reader.redoma(["net", "export", "--format", "pcapng", "-o", "kept"]).run().expect_code(1);
    assert!(ran.err().contains("hint: redoma run --capture"), "{ran:?}");
    assert_eq!(reader.read("kept"), "before");
}
