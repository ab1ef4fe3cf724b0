//! One line of words for each event.
//!
//! [`redoma_audit::Text`] and [`redoma_audit::Argv`] display escaped, so nothing from inside reaches the terminal raw.

use clap::builder::styling::Style;
use redoma_audit::escape::printable;
use redoma_audit::event::{
    Alert, Approval, Decision, Dns, Exchange, Exec, FileEvent, Flow, Limit, LimitKind, McpCall, Outcome,
    SessionEnd, SessionMeta, Severity, Snapshot, Verdict, Visibility,
};
use redoma_audit::{Event, Text};
use serde::Serialize;

use crate::printer::{BAD, BOLD, DIM, GOOD, WARN};

/// An event in words: how to show it, its kind, and what happened.
pub(crate) fn describe(event: &Event) -> (Style, String, String) {
    let (style, text) = match event {
        Event::SessionStart(meta) => (BOLD, start(meta)),
        Event::SessionEnd(end) => (BOLD, ending(end)),
        Event::Checkpoint(checkpoint) => (DIM, format!("signed with key {}", printable(&checkpoint.key))),
        Event::Exec(exec) => (Style::new(), program(exec)),
        Event::File(file) => (WARN, file_event(file)),
        Event::Decision(decision) => (of_verdict(decision.verdict), verdict(decision)),
        Event::Approval(approval) => (Style::new(), answer(approval)),
        Event::Alert(alert) => (of_severity(alert.severity), alarm(alert)),
        Event::Limit(limit) => (BAD, reached(limit)),
        Event::Lifecycle(step) => {
            (DIM, format!("{}{}", word(&step.phase), after(": ", step.detail.as_ref())))
        }
        Event::Snapshot(snapshot) => (Style::new(), frozen(snapshot)),
        Event::Flow(flow) => (of_visibility(flow.visibility), connection(flow)),
        Event::Exchange(exchange) => (Style::new(), request(exchange)),
        Event::Dns(dns) => (of_verdict(dns.verdict), lookup(dns)),
        Event::McpCall(call) => (of_verdict(call.verdict), mcp_call(call)),
        other => (Style::new(), printable(&serde_json::to_string(other).unwrap_or_default()).into_owned()),
    };
    (style, kind(event), text)
}

/// How a session ended, in a few words.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited { code: 0 } => "ok".to_owned(),
        Outcome::Exited { code } => format!("exit {code}"),
        Outcome::Signaled { signal } => format!("signal {signal}"),
        Outcome::TimedOut => "time limit".to_owned(),
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::Failed { reason } => format!("failed: {reason}"),
    }
}

/// The event's name in the record.
fn kind(event: &Event) -> String {
    let value = serde_json::to_value(event).unwrap_or_default();
    let kind = value.get("kind").and_then(|kind| kind.as_str()).unwrap_or("unknown");
    printable(kind).replace('_', "-")
}

/// A plain enum's name in the record.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or("?").replace('_', " ")
}

fn after(before: &str, text: Option<&Text>) -> String {
    text.map(|text| format!("{before}{text}")).unwrap_or_default()
}

fn start(meta: &SessionMeta) -> String {
    let agent = after(" agent ", meta.agent.as_ref());
    format!("{} in {} ({} tier, net {}{agent})", meta.argv, meta.cwd, word(&meta.tier), meta.net)
}

fn ending(end: &SessionEnd) -> String {
    let usage = &end.usage;
    let memory =
        usage.peak_memory.map(|bytes| format!(", {} memory", redoma_policy::ByteSize(bytes >> 20 << 20)));
    let (wall, cpu) = (seconds(usage.wall_us), seconds(usage.user_us + usage.system_us));
    format!("{} after {wall}, {cpu} of processor time{}", outcome(&end.outcome), memory.unwrap_or_default())
}

/// Microseconds, as people read them.
pub(crate) fn seconds(micros: u64) -> String {
    match micros {
        0..1_000_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        1_000_000..60_000_000 => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
        _ => format!("{} min {} s", micros / 60_000_000, micros / 1_000_000 % 60),
    }
}

fn program(exec: &Exec) -> String {
    format!("{} (process {})", exec.argv, exec.pid)
}

fn file_event(file: &FileEvent) -> String {
    format!("{} {}{}", word(&file.action), file.path, after(" → ", file.moved_to.as_ref()))
}

fn verdict(decision: &Decision) -> String {
    let rule = after(" at ", decision.source.as_ref());
    let (verdict, question) = (word(&decision.verdict), word(&decision.question));
    format!("{verdict} {question} {} by {}{rule}", decision.target, decision.rule)
}

fn answer(approval: &Approval) -> String {
    let (answer, question) = (word(&approval.answer), word(&approval.question));
    format!("{question} {}: {answer}, by {}", approval.target, approval.by)
}

fn alarm(alert: &Alert) -> String {
    format!("{} {}: {}{}", word(&alert.severity), alert.rule, alert.message, after(" ", alert.path.as_ref()))
}

fn reached(limit: &Limit) -> String {
    let (kind, action) = (word(&limit.limit), word(&limit.action));
    format!("{kind} limit of {} reached: {action}, by {}", amount(limit.limit, limit.allowed), limit.by)
}

/// An amount in the unit of its limit: bytes, processes, microseconds, thousandths of a processor.
fn amount(kind: LimitKind, number: u64) -> String {
    match kind {
        LimitKind::Memory | LimitKind::Disk => redoma_policy::ByteSize(number).to_string(),
        LimitKind::Time => seconds(number),
        LimitKind::Cpus => format!("{}.{:03}", number / 1000, number % 1000),
        LimitKind::Pids | LimitKind::Files => number.to_string(),
    }
}

fn frozen(snapshot: &Snapshot) -> String {
    format!("{} {}", word(&snapshot.action), snapshot.name)
}

fn connection(flow: &Flow) -> String {
    let host = flow.host.as_ref().map(ToString::to_string).or_else(|| flow.address.map(|ip| ip.to_string()));
    let (host, seen) = (host.unwrap_or_default(), word(&flow.visibility));
    format!(
        "{seen} {host}:{} {} ({}), {} B out, {} B in",
        flow.port, flow.protocol, flow.reason, flow.sent, flow.received
    )
}

fn request(exchange: &Exchange) -> String {
    let answer = match (&exchange.refused, exchange.status) {
        (Some(reason), _) => format!("refused: {reason}"),
        (None, Some(status)) => status.to_string(),
        (None, None) => "no answer".to_owned(),
    };
    format!("#{} {} {} {answer}", exchange.flow, exchange.method, exchange.url)
}

fn lookup(dns: &Dns) -> String {
    format!("{} {} {} by {}", word(&dns.verdict), dns.record, dns.name, dns.rule)
}

fn mcp_call(call: &McpCall) -> String {
    format!("{} {} {} by {}", word(&call.verdict), call.server, call.tool, call.rule)
}

fn of_verdict(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Allow => GOOD,
        Verdict::Deny => BAD,
        Verdict::Ask => WARN,
    }
}

fn of_severity(severity: Severity) -> Style {
    match severity {
        Severity::Notice => DIM,
        Severity::Warning => WARN,
        Severity::Critical => BAD,
    }
}

fn of_visibility(visibility: Visibility) -> Style {
    match visibility {
        Visibility::Inspected | Visibility::Opaque => GOOD,
        Visibility::Blocked => BAD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well_at_every_size() {
        let shown: Vec<_> = [0, 1_540, 2_340_000, 125_000_000].map(seconds).into_iter().collect();
        assert_eq!(shown, ["0.0 ms", "1.5 ms", "2.3 s", "2 min 5 s"]);
    }

    #[test]
    fn an_alert_from_inside_is_shown_on_one_line_and_escaped() {
        let alert = Alert {
            rule: "decoy".into(),
            severity: Severity::Critical,
            message: "read".into(),
            path: Some("a\n\u{1b}[2J".into()),
            pid: None,
        };
        let (_, kind, text) = describe(&Event::Alert(alert));
        assert_eq!((kind.as_str(), text.as_str()), ("alert", r"critical decoy: read a\n\u{1b}[2J"));
    }
}
