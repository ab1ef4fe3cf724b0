use super::*;

fn event(value: Value) -> Event {
    serde_json::from_value(value).unwrap()
}

fn flow(number: u64, visibility: &str, reason: &str) -> Event {
    event(json!({
        "kind": "flow", "flow": number, "open": false, "host": "api.example", "address": "2600:1f00::1", "port": 443,
        "protocol": "h2", "visibility": visibility, "reason": reason, "sent": 1, "received": 2
    }))
}

fn exchange(flow: u64, number: u64, more: &Value) -> Event {
    let mut exchange = json!({
        "kind": "exchange", "flow": flow, "number": number, "started_us": 1_700_000_000_000_000_u64 + number,
        "version": "HTTP/2", "method": "GET", "url": "https://api.example/a?q=a+b%26c&empty",
        "request": { "headers": [["accept", "*/*"]] }
    });
    exchange.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event(exchange)
}

fn archive(events: Vec<Event>) -> Value {
    serde_json::to_value(har("abcdefghij".parse().unwrap(), events)).unwrap()["log"].take()
}

/// A field's name, and whether a value has its type.
type Wanted = (&'static str, fn(&Value) -> bool);

/// The fields that the specification does not call optional, each with its type.
fn check_required(value: &Value, wanted: &[Wanted]) {
    for (name, fits) in wanted {
        assert!(value.get(name).is_some_and(fits), "{name} in {value}");
    }
}

#[test]
fn an_exchange_has_every_field_that_the_specification_requires() {
    let answered = json!({
        "answered_us": 1500, "finished_us": 4000, "status": 302, "method": "POST",
        "request": { "headers": [["Content-Type", "text/plain"]], "bytes": 5, "preview": "hello" },
        "response": { "headers": [["content-type", "text/html"], ["location", "/b"]], "bytes": 9, "preview": "<p>" }
    });
    let log = archive(vec![flow(7, "inspected", "policy"), exchange(7, 0, &answered)]);
    check_required(
        &log,
        &[("version", Value::is_string), ("creator", Value::is_object), ("entries", Value::is_array)],
    );
    let entry = &log["entries"][0];
    check_required(
        entry,
        &[
            ("startedDateTime", Value::is_string),
            ("time", Value::is_number),
            ("request", Value::is_object),
            ("response", Value::is_object),
            ("cache", Value::is_object),
            ("timings", Value::is_object),
        ],
    );
    let common: [Wanted; 5] = [
        ("httpVersion", Value::is_string),
        ("cookies", Value::is_array),
        ("headers", Value::is_array),
        ("headersSize", Value::is_i64),
        ("bodySize", Value::is_i64),
    ];
    check_required(&entry["request"], &common);
    check_required(&entry["response"], &common);
    check_required(&entry["response"], &[("statusText", Value::is_string), ("status", Value::is_i64)]);
    assert_eq!(entry["startedDateTime"], "2023-11-14T22:13:20.000000Z");
    assert_eq!(entry["timings"], json!({ "send": 0, "wait": 1.5, "receive": 2.5 }));
    assert_eq!(entry["time"], 4.0);
    assert_eq!(entry["serverIPAddress"], "2600:1f00::1");
    assert_eq!(entry["request"]["postData"]["mimeType"], "text/plain");
    assert_eq!(entry["request"]["postData"]["text"], "hello");
    assert_eq!(entry["response"]["redirectURL"], "/b");
    let content = &entry["response"]["content"];
    assert_eq!((&content["size"], &content["mimeType"]), (&json!(9), &json!("text/html")));
    let query = json!([{ "name": "q", "value": "a b&c" }, { "name": "empty", "value": "" }]);
    assert_eq!(entry["request"]["queryString"], query);
}

#[test]
fn what_was_not_seen_or_not_let_through_is_never_an_entry() {
    let log = archive(vec![
        flow(1, "opaque", "not-tls"),
        flow(2, "blocked", "not-listed"),
        flow(3, "blocked", "policy"),
        exchange(3, 0, &json!({ "status": 200, "response": {} })),
        exchange(3, 1, &json!({ "status": 403, "response": {}, "refused": "policy" })),
    ]);
    assert_eq!(log["entries"].as_array().unwrap().len(), 1);
    assert_eq!(log["entries"][0]["response"]["status"], 200);
    let unseen = log["_flows"].as_array().unwrap().iter();
    let unseen: Vec<_> = unseen.map(|flow| (flow["flow"].as_u64(), flow["visibility"].as_str())).collect();
    assert_eq!(unseen, [(Some(1), Some("opaque")), (Some(2), Some("blocked")), (Some(3), Some("blocked"))]);
    assert_eq!(log["_refused"][0]["reason"], "policy");
}

#[test]
fn a_server_that_failed_is_an_entry_without_an_answer() {
    let failed = json!({ "finished_us": 10, "refused": "upstream-failed" });
    let log = archive(vec![flow(1, "inspected", "policy"), exchange(1, 0, &failed)]);
    let entry = &log["entries"][0];
    assert_eq!((&entry["response"]["status"], &entry["_error"]), (&json!(0), &json!("upstream-failed")));
    assert_eq!(entry["response"]["bodySize"], -1);
}

#[test]
fn the_last_record_of_an_exchange_counts() {
    let log = archive(vec![
        exchange(1, 0, &json!({ "answered_us": 5 })),
        exchange(1, 0, &json!({ "answered_us": 5, "finished_us": 6, "status": 204, "response": {} })),
    ]);
    assert_eq!(log["entries"].as_array().unwrap().len(), 1);
    assert_eq!(log["entries"][0]["response"]["status"], 204);
}

#[test]
fn a_secret_that_decoding_uncovers_stays_out() {
    let hidden = json!({ "url": "https://api.example/?key=AKIA%41%31B2C3D4E5F6G7H8" });
    let log = archive(vec![exchange(1, 0, &hidden)]);
    let value = log["entries"][0]["request"]["queryString"][0]["value"].as_str().unwrap();
    assert!(value.contains("[redacted"), "{value}");
}
