//! One question to the resolver and its answer. Nothing is asked of any other resolver: names are resolved when they are
//! dialled, outside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, PTR};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use redoma_audit::Text;
use redoma_audit::event::{Dns, Verdict};
use redoma_policy::HostName;

use super::names::Names;

/// What the policy says of a name: whether any connection to it could be let through, and by which rule.
pub(crate) struct Opinion {
    pub(crate) verdict: Verdict,
    pub(crate) rule: String,
}

/// What goes back, and what goes into the record.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The answer; none for what is no question at all.
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) event: Option<Dns>,
}

/// A name keeps its address for the whole session, but a client that outlives it should ask again soon.
const TTL_SECONDS: u32 = 60;

/// Answers a message as it came over the wire (RFC 1035).
pub(crate) fn answer(query: &[u8], names: &Names, opinion: &dyn Fn(&HostName) -> Opinion) -> Answered {
    let Ok(query) = Message::from_vec(query) else {
        return Answered { bytes: format_error(query), event: None };
    };
    if query.metadata.message_type != MessageType::Query {
        // To answer an answer could go on for ever.
        return Answered { bytes: None, event: None };
    }
    let mut reply = Message::response(query.metadata.id, query.metadata.op_code);
    reply.metadata.recursion_desired = query.metadata.recursion_desired;
    reply.metadata.recursion_available = true;
    if let Some(edns) = &query.edns {
        let mut own = hickory_proto::op::Edns::new();
        own.set_max_payload(edns.max_payload().clamp(512, 4096));
        reply.set_edns(own);
    }
    let event = fill(&mut reply, &query, names, opinion);
    Answered { bytes: reply.to_vec().ok(), event }
}

fn fill(
    reply: &mut Message,
    query: &Message,
    names: &Names,
    opinion: &dyn Fn(&HostName) -> Opinion,
) -> Option<Dns> {
    if query.metadata.op_code != OpCode::Query {
        reply.metadata.response_code = ResponseCode::NotImp;
        return None;
    }
    // More than one question in a message has no meaning (RFC 9619).
    let [question] = query.queries.as_slice() else {
        reply.metadata.response_code = ResponseCode::FormErr;
        return None;
    };
    reply.add_query(question.clone());
    let refuse = |reply: &mut Message, rule: &str| {
        reply.metadata.response_code = ResponseCode::Refused;
        Some(record(&question.name.to_ascii(), question.query_type, Verdict::Deny, rule, Vec::new()))
    };
    if question.query_class != DNSClass::IN {
        return refuse(reply, "only the Internet class is answered");
    }
    if question.query_type == RecordType::PTR {
        return Some(reverse(reply, &question.name, names));
    }
    let Ok(name) = question.name.to_ascii().parse::<HostName>() else {
        return refuse(reply, "it is no well-formed host name");
    };
    if is_local(&name) {
        return Some(local(reply, &question.name, question.query_type));
    }
    let Opinion { verdict, rule } = opinion(&name);
    let Some(found) = names.addresses_of(&name) else {
        return refuse(reply, "too many names in one session");
    };
    let addresses = addresses(found, question.query_type);
    add(reply, &question.name, &addresses);
    Some(record(name.as_str(), question.query_type, verdict, &rule, addresses))
}

/// A refused name gets addresses too: only so can the connection be told why it goes nowhere. All other kinds of
/// records (HTTPS among them, which would hand out keys for an encrypted hello) exist for no name.
fn addresses((v4, v6): (Ipv4Addr, Ipv6Addr), wanted: RecordType) -> Vec<IpAddr> {
    match wanted {
        RecordType::A => vec![v4.into()],
        RecordType::AAAA => vec![v6.into()],
        _ => Vec::new(),
    }
}

fn is_local(name: &HostName) -> bool {
    name.as_str() == "localhost" || name.as_str().ends_with(".localhost")
}

/// Loopback is the sandbox's own (RFC 6761).
fn local(reply: &mut Message, name: &Name, wanted: RecordType) -> Dns {
    let addresses = addresses((Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST), wanted);
    add(reply, name, &addresses);
    record(&name.to_ascii(), wanted, Verdict::Allow, "loopback is the sandbox's own", addresses)
}

fn reverse(reply: &mut Message, name: &Name, names: &Names) -> Dns {
    let address = name.parse_arpa_name().ok().map(|net| net.addr());
    let known = address.and_then(|address| names.name_of(address));
    match known.as_ref().and_then(|known| Name::from_ascii(format!("{known}.")).ok()) {
        Some(target) => {
            reply.add_answer(Record::from_rdata(name.clone(), TTL_SECONDS, RData::PTR(PTR(target))));
        }
        None => reply.metadata.response_code = ResponseCode::NXDomain,
    }
    let verdict = if known.is_some() { Verdict::Allow } else { Verdict::Deny };
    record(&name.to_ascii(), RecordType::PTR, verdict, "names of the gateway's own addresses", Vec::new())
}

fn add(reply: &mut Message, name: &Name, addresses: &[IpAddr]) {
    for address in addresses {
        let data = match address {
            IpAddr::V4(address) => RData::A(A(*address)),
            IpAddr::V6(address) => RData::AAAA(AAAA(*address)),
        };
        reply.add_answer(Record::from_rdata(name.clone(), TTL_SECONDS, data));
    }
}

fn record(name: &str, wanted: RecordType, verdict: Verdict, rule: &str, addresses: Vec<IpAddr>) -> Dns {
    let name = name.strip_suffix('.').unwrap_or(name);
    Dns {
        name: Text::new(name),
        record: Text::new(&wanted.to_string()),
        verdict,
        rule: Text::new(rule),
        addresses,
    }
}

/// `FORMERR` for a query that cannot be read beyond its head.
fn format_error(query: &[u8]) -> Option<Vec<u8>> {
    let head: [u8; 12] = query.get(..12)?.try_into().ok()?;
    let is_query = head[2] & 0x80 == 0;
    let id = u16::from_be_bytes([head[0], head[1]]);
    is_query.then(|| Message::error_msg(id, OpCode::Query, ResponseCode::FormErr).to_vec().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::Query;
    use proptest::prelude::*;

    /// A name with any bytes in its labels, as only a wire can carry it.
    fn raw(name: &str) -> Name {
        let labels = name.split_terminator('.').filter(|label| !label.is_empty()).map(str::as_bytes);
        Name::from_labels(labels).unwrap()
    }

    fn ask(names: &Names, name: &str, wanted: RecordType) -> (Message, Option<Dns>) {
        let mut query = Message::new(7, MessageType::Query, OpCode::Query);
        query.metadata.recursion_desired = true;
        query.add_query(Query::query(raw(name), wanted));
        let opinion = |name: &HostName| match name.as_str() {
            "allowed.example" => Opinion { verdict: Verdict::Allow, rule: "rule 1".to_owned() },
            _ => Opinion { verdict: Verdict::Deny, rule: "no rule".to_owned() },
        };
        let answered = answer(&query.to_vec().unwrap(), names, &opinion);
        (Message::from_vec(&answered.bytes.unwrap()).unwrap(), answered.event)
    }

    #[test]
    fn a_name_has_one_address_of_each_version() {
        let names = Names::default();
        let (reply, event) = ask(&names, "allowed.example.", RecordType::A);
        assert_eq!(reply.metadata.id, 7);
        assert_eq!(reply.metadata.response_code, ResponseCode::NoError);
        assert_eq!(reply.answers.len(), 1);
        let event = event.unwrap();
        assert_eq!((event.verdict, event.record.as_str()), (Verdict::Allow, "A"));
        assert_eq!(names.name_of(event.addresses[0]), Some("allowed.example".parse().unwrap()));
        assert_eq!(ask(&names, "allowed.example.", RecordType::AAAA).0.answers.len(), 1);
    }

    #[test]
    fn a_refused_name_is_recorded_as_such() {
        let (_, event) = ask(&Names::default(), "secret-data.evil.example.", RecordType::A);
        assert_eq!(event.unwrap().verdict, Verdict::Deny);
    }

    #[test]
    fn no_other_records_exist() {
        for wanted in [RecordType::HTTPS, RecordType::SVCB, RecordType::TXT, RecordType::MX, RecordType::ANY]
        {
            let (reply, event) = ask(&Names::default(), "allowed.example.", wanted);
            assert_eq!(reply.metadata.response_code, ResponseCode::NoError, "{wanted}");
            assert!(reply.answers.is_empty(), "{wanted}");
            assert!(event.is_some());
        }
    }

    #[test]
    fn reverse_names_are_those_of_synthetic_addresses_only() {
        let names = Names::default();
        let (v4, v6) = names.addresses_of(&"allowed.example".parse().unwrap()).unwrap();
        for address in [IpAddr::from(v4), IpAddr::from(v6)] {
            let arpa = Name::from(address).to_ascii();
            assert_eq!(ask(&names, &arpa, RecordType::PTR).0.answers.len(), 1, "{arpa}");
        }
        let (reply, _) = ask(&names, "1.0.0.10.in-addr.arpa.", RecordType::PTR);
        assert_eq!(reply.metadata.response_code, ResponseCode::NXDomain);
    }

    #[test]
    fn odd_names_are_refused() {
        for name in
            ["a\0b.example.", "a b.example.", "1.2.3.4.", "a\nb.example.", "b\u{fc}cher.example.", "."]
        {
            let (reply, event) = ask(&Names::default(), name, RecordType::A);
            assert_eq!(reply.metadata.response_code, ResponseCode::Refused, "{name}");
            assert_eq!(event.unwrap().verdict, Verdict::Deny);
        }
    }

    #[test]
    fn localhost_is_local() {
        let (reply, _) = ask(&Names::default(), "localhost.", RecordType::A);
        assert_eq!(reply.answers[0].data, RData::A(A(Ipv4Addr::LOCALHOST)));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_answered_or_dropped(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let opinion = |_: &HostName| Opinion { verdict: Verdict::Deny, rule: String::new() };
            let answered = answer(&bytes, &Names::default(), &opinion);
            if let Some(reply) = answered.bytes {
                prop_assert_eq!(&reply[..2], &bytes[..2]);
                prop_assert_eq!(reply[2] & 0x80, 0x80);
            }
        }
    }
}
