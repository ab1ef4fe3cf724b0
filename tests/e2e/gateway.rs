//! Connections through the gateway, in both tiers, with the programs that people use.

use redoma_tests::{Home, Ran, Tier, World, requires};
use serde_json::Value;

/// The last record of each flow.
fn flows(home: &Home) -> Vec<Value> {
    let log = home.folder("reader").redoma(["log", "--json"]).run().ok();
    let mut flows: Vec<Value> = Vec::new();
    for line in log.out().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        if record["kind"] == "flow" {
            flows.retain(|flow| flow["flow"] != record["flow"]);
            flows.push(record);
        }
    }
    flows
}

fn events(home: &Home, kind: &str) -> Vec<Value> {
    let log = home.folder("reader").redoma(["log", "--json"]).run().ok();
    let records =
        log.out().lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
    records.into_iter().filter(|record| record["kind"] == kind).collect()
}

fn verdicts(home: &Home) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    flows(home).iter().map(|flow| (text(&flow["visibility"]), text(&flow["reason"]))).collect()
}

fn curl(world: &World, home: &Home, tier: Tier, options: &[&str], arguments: &[&str]) -> Ran {
    let curl = ["curl", "--silent", "--show-error", "--max-time", "20"];
    let project = home.project_for(tier);
    world.run(&project, tier, options, curl.into_iter().chain(arguments.iter().copied())).run()
}

#[test]
fn tls_is_looked_into_and_the_server_is_verified() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    for tier in Tier::ALL {
        let home = Home::new();
        let ran = curl(&world, &home, tier, &["--allow", "api.example"], &["https://api.example/a?b"]).ok();
        assert!(ran.out().contains(r#""path": "/a?b""#), "{tier:?} {ran:?}");
        assert_eq!(verdicts(&home), [("inspected".into(), "policy".into())], "{tier:?}");
        let exchanges = events(&home, "exchange");
        assert_eq!(exchanges.len(), 1, "{exchanges:?}");
        assert_eq!(exchanges[0]["url"], "https://api.example/a?b");
        assert_eq!(exchanges[0]["status"], 200);
        assert!(exchanges[0]["response"]["preview"].as_str().unwrap().contains("/a?b"));
        let flow = &flows(&home)[0];
        assert!(flow["process"]["path"].as_str().unwrap().ends_with("curl"), "{flow}");
        assert_eq!(flow["tls"]["version"], "TLSv1.3");
    }
}

#[test]
fn a_refused_host_is_told_in_its_own_protocol_and_nobody_hears_of_it() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    for tier in Tier::ALL {
        for url in ["https://other.example/", "http://other.example/"] {
            let home = Home::new();
            let ran = curl(&world, &home, tier, &["--allow", "api.example"], &["--include", url]).ok();
            assert!(ran.out().contains(" 403 "), "{ran:?}");
            assert!(ran.out().contains("redoma-reason: not-listed"), "{ran:?}");
            assert!(ran.out().contains("hint: redoma allow other.example"), "{ran:?}");
            assert_eq!(verdicts(&home), [("blocked".into(), "not-listed".into())], "{tier:?}");
        }
    }
    assert_eq!(world.asked(), Vec::<String>::new());
}

#[test]
fn what_speaks_neither_tls_nor_http_passes_unseen_and_is_called_so() {
    requires!("python3", "ip");
    let world = World::new();
    let script = "import socket
s = socket.create_connection(('api.example', 25), 10)
print(s.recv(100))
s.sendall(b'x' * 1000000); s.shutdown(1)
n = 0
while d := s.recv(1 << 16): n += len(d)
print(n)";
    for tier in Tier::ALL {
        let home = Home::new();
        let project = home.project_for(tier);
        let options = ["--allow", "api.example:25"];
        let ran = world.run(&project, tier, &options, ["/usr/bin/python3", "-c", script]).run().ok();
        assert_eq!(ran.out(), "b'220 ready\\r\\n'\n1000000\n");
        assert_eq!(verdicts(&home), [("opaque".into(), "not-tls".into())]);
        let flow = &flows(&home)[0];
        assert_eq!((&flow["sent"], &flow["received"]), (&1_000_000.into(), &1_000_011.into()));
    }
}

#[test]
fn names_that_lead_to_near_addresses_are_refused() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    for name in ["corp.example", "metadata.example", "loopback.example", "mixed.example"] {
        let home = Home::new();
        let url = format!("http://{name}/");
        let ran =
            curl(&world, &home, Tier::Full, &["--allow", &format!("{name}:80")], &["--include", &url]).ok();
        assert!(ran.out().contains("redoma-reason: private-address"), "{name} {ran:?}");
    }
    let home = Home::new();
    let options = ["--allow", "corp.example:80", "--allow", "10.1.2.3:80"];
    let ran = curl(&world, &home, Tier::Full, &options, &["http://corp.example/"]).ok();
    assert!(ran.out().contains(r#""path": "/""#), "the twin {ran:?}");
}

#[test]
fn a_bad_certificate_is_the_servers_fault_and_said_so() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let expected = [
        ("expired.example", "has expired"),
        ("self.example", "signed by nobody"),
        ("wrong.example", "right.example"),
    ];
    for (name, words) in expected {
        let home = Home::new();
        let url = format!("https://{name}/");
        let ran = curl(&world, &home, Tier::Full, &["--allow", name], &["--include", &url]).ok();
        assert!(ran.out().contains(" 502 ") && ran.out().contains(words), "{name} {ran:?}");
        assert_eq!(verdicts(&home), [("blocked".into(), "upstream-failed".into())]);
    }
}

#[test]
fn tls_and_requests_are_for_the_host_that_was_decided_on() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let attempts: [(&[&str], &str); 4] = [
        (
            &["--insecure", "--connect-to", "other.example:443:api.example:443", "https://other.example/"],
            "sni-mismatch",
        ),
        (&["--header", "Host: other.example", "https://api.example/"], "host-mismatch"),
        (&["--header", "Host: other.example", "http://api.example/"], "host-mismatch"),
        (&["--request-target", "http://other.example/", "http://api.example/"], "host-mismatch"),
    ];
    for (arguments, reason) in attempts {
        let home = Home::new();
        let arguments = [&["--include"], arguments].concat();
        let options = ["--allow", "api.example", "--allow", "api.example:80"];
        let ran = curl(&world, &home, Tier::Full, &options, &arguments).ok();
        assert!(ran.out().contains(&format!("redoma-reason: {reason}")), "{arguments:?} {ran:?}");
        assert_eq!(verdicts(&home), [("blocked".into(), reason.into())]);
    }
}

#[test]
fn an_opaque_rule_takes_only_its_own_host() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    home.policy("[[network.rule]]\nhost = \"api.example\"\naction = \"allow\"\n");
    let own = world.authority().into_string().unwrap();
    let ran =
        curl(&world, &home, Tier::Full, &["--read", &own], &["--cacert", &own, "https://api.example/"]).ok();
    assert!(ran.out().contains(r#""path": "/""#), "{ran:?}");
    assert_eq!(verdicts(&home), [("opaque".into(), "policy".into())]);
    let fronted =
        ["--insecure", "--connect-to", "other.example:443:api.example:443", "https://other.example/"];
    let ran = curl(&world, &home, Tier::Full, &[], &fronted).ok();
    assert!(ran.out().contains("sni-mismatch"), "{ran:?}");
}

#[test]
fn a_client_that_takes_only_the_real_certificate_is_named() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    let own = world.authority().into_string().unwrap();
    let arguments = ["--cacert", &own, "https://api.example/"];
    let ran = curl(&world, &home, Tier::Full, &["--read", &own, "--allow", "api.example"], &arguments);
    assert_eq!(ran.code(), 60, "{ran:?}");
    assert_eq!(verdicts(&home), [("blocked".into(), "pinned".into())]);
    // By default such a client passes unseen where nobody asked to look into it: at its second try.
    let home = Home::new();
    let retry = [
        "--retry",
        "2",
        "--retry-all-errors",
        "--retry-delay",
        "0",
        "--cacert",
        &own,
        "https://api.example/",
    ];
    let ran = curl(&world, &home, Tier::Full, &["--read", &own, "--net", "allow"], &retry).ok();
    assert!(ran.out().contains(r#""path": "/""#), "{ran:?}");
    let expected = [("blocked".into(), "pinned".into()), ("opaque".into(), "pinned".into())];
    assert_eq!(verdicts(&home), expected);
}

#[test]
fn proxies_for_tools_that_want_one() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    let project = home.project("p");
    let script = "
for proxy in $REDOMA_PROXY socks5h://127.0.0.1:3128; do
  curl -sS -x $proxy https://api.example/tls && curl -sS -x $proxy http://api.example/plain || exit 1
  curl -sS -x $proxy http://other.example/ | grep -q 'redoma allow other.example:80' || exit 2
done";
    let options = ["--allow", "api.example", "--allow", "api.example:80"];
    let _ = world.run(&project, Tier::Full, &options, ["sh", "-c", script]).run().ok();
    let visible: Vec<_> = verdicts(&home).into_iter().map(|(visibility, _)| visibility).collect();
    assert_eq!(visible, ["inspected", "inspected", "blocked", "inspected", "inspected", "blocked"]);
}

#[test]
fn events_and_websockets_stream() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    let project = home.project("p");
    let script = "import socket, ssl, sys, os
context = ssl.create_default_context()
def connect():
    return context.wrap_socket(socket.create_connection(('api.example', 443), 10), server_hostname='api.example')
s = connect()
s.sendall(b'GET /socket HTTP/1.1\\r\\nHost: api.example\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n')
head = b''
while b'\\r\\n\\r\\n' not in head: head += s.recv(1000)
assert b' 101 ' in head, head
for n in range(100):
    s.sendall(b'ping %d' % n); assert s.recv(100) == b'ping %d' % n
s.close()
s = connect()
s.sendall(b'GET /events HTTP/1.1\\r\\nHost: api.example\\r\\n\\r\\n')
got = b''
for n in range(3):
    while b'data: %d\\n' % n not in got: got += s.recv(1000)
    open(os.path.join(sys.argv[1], 'seen-%d' % n), 'w').close()
print('streamed')";
    let folder = world.folder().to_str().unwrap().to_owned();
    let options = ["--allow", "api.example", "--write", &folder];
    let ran =
        world.run(&project, Tier::Full, &options, ["/usr/bin/python3", "-c", script, &folder]).run().ok();
    assert_eq!(ran.out(), "streamed\n");
}

#[test]
fn ipv6_is_as_good() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    let ran = curl(&world, &home, Tier::Full, &["--net", "allow"], &["-6", "http://v6.example/"]).ok();
    assert!(ran.out().contains(r#""path": "/""#), "{ran:?}");
    assert_eq!(flows(&home)[0]["address"], "2600:1f00::1");
}

#[test]
fn a_person_is_asked_once_and_who_cannot_be_asked_is_a_no() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    let project = home.project("p");
    let script =
        "curl -sS https://api.example/1; curl -sS https://api.example/2; curl -sS https://other.example/";
    let mut terminal = world.run(&project, Tier::Full, &["--net", "ask"], ["sh", "-c", script]).terminal();
    terminal.send("s");
    terminal.expect("wants to connect to api.example:443");
    terminal.expect("[D]eny?");
    // What was typed before, and at once, answers nothing; so it is typed until it does.
    let answered = |home: &Home| !events(home, "approval").is_empty();
    while !answered(&home) {
        terminal.send("s");
    }
    terminal.expect("\"path\": \"/1\"");
    terminal.expect("\"path\": \"/2\"");
    terminal.expect("wants to connect to other.example:443");
    while events(&home, "approval").len() < 2 {
        terminal.send("d");
    }
    terminal.expect("hint: redoma allow other.example:443");
    let (code, _) = terminal.finish();
    assert_eq!(code, 0);
    let answers: Vec<_> =
        events(&home, "approval").iter().map(|approval| approval["answer"].clone()).collect();
    assert_eq!(answers, ["session", "deny"]);

    let home = Home::new();
    let ran = world.run(&home.project("p"), Tier::Full, &["--net", "ask"], ["sh", "-c", script]).run().ok();
    assert!(
        ran.out().contains("approval-timeout") && ran.err().contains("redoma allow api.example:443"),
        "{ran:?}"
    );
}

#[test]
fn what_is_allowed_always_is_written_into_the_policy() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    let project = home.project("p");
    let command = ["curl", "-sS", "https://api.example/1"];
    let mut terminal = world.run(&project, Tier::Full, &["--net", "ask"], command).terminal();
    terminal.expect("[D]eny?");
    while events(&home, "approval").is_empty() {
        terminal.send("a");
    }
    let _ = terminal.finish();
    assert!(project.read("redoma.toml").contains("api.example"));
}

#[test]
fn ports_are_published_and_reached_one_by_one() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    for tier in Tier::ALL {
        let home = Home::new();
        let project = home.project_for(tier);
        // Port 80 of this machine is a web server in this world.
        home.policy("[network.local]\nreach = [\"localhost:80\"]\n");
        let script = "curl -sS http://127.0.0.1/reached; curl -s telnet://127.0.0.1:25 </dev/null; true";
        let ran = world.run(&project, tier, &["--net", "deny"], ["sh", "-c", script]).run().ok();
        assert!(
            ran.out().contains("\"path\": \"/reached\"") && !ran.out().contains("220 ready"),
            "{tier:?} {ran:?}"
        );
        let reached = flows(&home).into_iter().filter(|flow| flow["port"] == 80).collect::<Vec<_>>();
        assert_eq!(reached.len(), 1, "{tier:?} {reached:?}");
        assert_eq!(
            (&reached[0]["direction"], &reached[0]["visibility"]),
            (&"reach".into(), &"opaque".into())
        );
    }
}

#[test]
fn the_gateway_serves_by_itself_as_a_proxy() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    let project = home.folder("p");
    let options = ["proxy", "--net", "deny", "--allow", "api.example", "--ca-out", "ca.pem"];
    let running = world.enter(project.redoma(options)).spawn();
    let certificate = project.path().join("ca.pem");
    while !std::fs::read_to_string(&certificate).is_ok_and(|pem| pem.ends_with("CERTIFICATE-----\n")) {
        std::thread::yield_now();
    }
    let curl = format!("curl -sS --cacert {} -x", certificate.display());
    let script = format!(
        "{curl} http://127.0.0.1:8899 https://api.example/http && {curl} socks5h://127.0.0.1:8899 https://api.example/socks &&
        {curl} http://127.0.0.1:8899 https://other.example/ && {curl} http://127.0.0.1:8899 http://127.0.0.1/"
    );
    let ran = world.outside(&script).output().unwrap();
    let out = String::from_utf8(ran.stdout).unwrap();
    assert!(out.contains("\"path\": \"/http\"") && out.contains("\"path\": \"/socks\""), "{out}");
    assert!(out.contains("redoma allow other.example:443") && out.contains("blocked 127.0.0.1:80"), "{out}");
    let pid = rustix::process::Pid::from_raw(running.pid()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = running.wait().ok();
    assert!(ran.err().contains("2 inspected, 0 opaque, 2 blocked"), "{ran:?}");
    let flows = flows(&home);
    assert!(
        flows.iter().all(|flow| flow["process"]["path"].as_str().is_some_and(|path| path.ends_with("curl")))
    );
    assert_eq!(flows.len(), 4);
}

#[test]
fn the_companys_proxy_is_gone_through_and_its_word_is_not_taken_for_addresses() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    // One that opens tunnels for those who give their name, and says which.
    let proxy = "import base64, socket, sys, threading
listener = socket.create_server(('93.184.1.1', 3128))
def relay(a, b):
    while data := a.recv(65536): b.sendall(data)
    b.shutdown(1)
def serve(client):
    head = b''
    while b'\\r\\n\\r\\n' not in head: head += client.recv(1)
    print(head.decode().split()[1], file=open(sys.argv[1] + '/tunnels', 'a'))
    if base64.b64encode(b'me:secret') not in head:
        return client.sendall(b'HTTP/1.1 407 No\\r\\n\\r\\n') or client.close()
    server = socket.create_connection(('93.184.1.1', int(head.split()[1].split(b':')[1])))
    client.sendall(b'HTTP/1.1 200 OK\\r\\nVia: it\\r\\n\\r\\n')
    threading.Thread(target=relay, args=(client, server)).start(); relay(server, client)
print('up', flush=True)
while True: threading.Thread(target=serve, args=(listener.accept()[0],)).start()";
    let folder = world.folder().to_str().unwrap().to_owned();
    let mut serving = world.outside("exec python3 -c \"$0\" \"$1\"");
    let mut serving = serving.args([proxy, &folder]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let output = serving.stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    let project = home.project("p");
    let run = |proxy: &str, url: &str, allow: &str| {
        let options = ["--net", "deny", "--allow", allow];
        let curl = ["curl", "-sS", "--max-time", "20", url];
        world.run(&project, Tier::Full, &options, curl).env("https_proxy", proxy).run().ok()
    };
    let ran = run("http://me:secret@93.184.1.1:3128", "https://api.example/", "api.example");
    assert!(ran.out().contains("\"path\": \"/\""), "{ran:?}");
    let ran = run("http://93.184.1.1:3128", "https://api.example/", "api.example");
    assert!(ran.out().contains("other credentials (407)"), "{ran:?}");
    let ran = run("http://me:secret@93.184.1.1:3128", "https://corp.example/", "corp.example");
    assert!(ran.out().contains("private-address"), "{ran:?}");
    let tunnels = std::fs::read_to_string(world.folder().join("tunnels")).unwrap();
    assert_eq!(tunnels, "api.example:443\napi.example:443\n");
    serving.kill().unwrap();
    serving.wait().unwrap();
}

/// What `why connect` says is what happens, for every target, policy and tier.
#[test]
fn why_says_what_the_gateway_does() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let targets = [
        "api.example:80",
        "api.example:443",
        "www.api.example:80",
        "other.example:80",
        "API.example:80",
        "93.184.1.1:80",
        "10.1.2.3:80",
        "169.254.169.254:80",
        "[2600:1f00::1]:80",
        "[::ffff:93.184.1.1]:80",
    ];
    let rule = |host: &str, more: &str| format!("[[network.rule]]\nhost = \"{host}\"\n{more}\n");
    let policies = [
        ("deny", String::new()),
        ("allow", rule("api.example", "action = \"deny\"")),
        (
            "deny",
            rule("*.example", "action = \"inspect\"\nports = [80]")
                + &rule("other.example", "action = \"deny\""),
        ),
        (
            "deny",
            rule("93.184.1.1", "action = \"inspect\"")
                + &rule("10.1.2.3", "action = \"allow\"\nports = [80]"),
        ),
    ];
    for tier in Tier::ALL {
        for (net, policy) in &policies {
            let home = Home::new();
            home.policy(policy);
            let project = home.project_for(tier);
            for target in targets {
                let why = ["why", "connect", target, "--json", "--net", net, "--tier", tier.name()];
                let said = project.redoma(why).run().json()["effect"] == "allow";
                let scheme = if target.ends_with(":443") { "https" } else { "http" };
                let url = format!("{scheme}://{target}/");
                let curl = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20", &url];
                let ran = world.run(&project, tier, &["--net", net], curl).run();
                let did = ran.out() == "200";
                // The servers' certificates are for names.
                assert_eq!(did, said, "{tier:?} {net} {policy} {target}: {ran:?}");
            }
        }
    }
}
