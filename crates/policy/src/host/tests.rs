//! Every spelling of a host that was thought of, and what becomes of it.

use proptest::prelude::*;

use super::*;

fn pattern(text: &str) -> HostPattern {
    text.parse().unwrap()
}

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

#[test]
fn a_name_means_itself_and_a_star_only_what_is_below() {
    assert!(pattern("example.com").matches(&host("EXAMPLE.com.")));
    assert!(!pattern("example.com").matches(&host("a.example.com")));
    assert!(pattern("*.example.com").matches(&host("a.b.example.com")));
    assert!(!pattern("*.example.com").matches(&host("example.com")));
    assert!(pattern("example.com,*.example.com").matches(&host("example.com")));
    assert!(pattern("example.com,*.example.com").matches(&host("a.example.com")));
}

#[test]
fn suffixes_are_compared_label_by_label() {
    for name in ["evilexample.com", "example.com.evil.com", "xample.com"] {
        assert!(!pattern("example.com,*.example.com").matches(&host(name)), "{name}");
    }
}

/// What is neither a name nor an address, however it is asked for.
fn odd_spellings() -> Vec<String> {
    let odd = [
        "",
        ".",
        "..",
        "a b.com",
        " a.com",
        "a.com ",
        "a\tb",
        "a\0.com",
        "a.com\0.evil.com",
        "a\r\n.com",
        "a.com\n",
        "a%2e.com",
        "%61.com",
        "u@a.com",
        "http://a.com",
        "a.com/x",
        "a.com?x",
        "a.com#x",
        "a.com\\.evil.com",
        "[a.com]",
        "[127.0.0.1]",
        "fe80::1%eth0",
        "fe80::1%25eth0",
        "2130706433",
        "0x7f000001",
        "0X7F.0.0.1",
        "0x7f.1",
        "127.1",
        "127.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "0177.0.0.1",
        "017700000001",
        "1.2.3.4.5",
        "256.1.1.1",
        "a.1",
        "::ffff:127.1",
        "::1::",
        "1::2::3",
        "bücher.example",
        "ехample.com",
        "ｅxample.com",
        "example。com",
        "a\u{ad}b.com",
        "-a.com",
        "a-.com",
        "a..b",
        ".a.com",
        "a.com..",
        "a.com,b.com",
        "a;b.com",
        "a'b.com",
        "a\"b.com",
        "a$b.com",
        "a(b).com",
    ];
    let label = format!("{}.com", "a".repeat(64));
    let name = format!("{}com", "abcdefghi.".repeat(30));
    odd.iter().map(|text| (*text).to_owned()).chain([label, name]).collect()
}

#[test]
fn odd_spellings_are_refused_everywhere() {
    for text in odd_spellings() {
        assert!(text.parse::<Host>().is_err(), "{text:?}");
        assert!(text.parse::<HostPattern>().is_err(), "{text:?}");
        assert!(Host::from_bytes(text.as_bytes()).is_err(), "{text:?}");
        assert!(Authority::from_bytes(text.as_bytes()).is_err(), "{text:?}");
        assert!(Authority::from_bytes(format!("{text}:443").as_bytes()).is_err(), "{text:?}:443");
    }
    for text in ["*", "*a.com", "a.*.com", "*.*.com", "*.", "*.1.2.3.4"] {
        assert!(text.parse::<HostPattern>().is_err(), "{text:?}");
    }
    assert!(Host::from_bytes(b"\xff\xfe.com").is_err());
    assert!(Host::from_bytes(&[b'a'; 70_000]).is_err());
}

#[test]
fn what_is_written_in_several_ways_has_one_spelling() {
    for (written, one) in [
        ("EXAMPLE.com.", "example.com"),
        ("xn--BCHER-kva.example", "xn--bcher-kva.example"),
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::FFFF:c000:201", "192.0.2.1"),
        ("2001:db8:0:0::1", "2001:db8::1"),
        ("2001:DB8::0.0.0.1", "2001:db8::1"),
    ] {
        assert_eq!(host(written).to_string(), one, "{written}");
    }
    assert!(pattern("192.0.2.1").matches(&host("::ffff:192.0.2.1")));
    assert!(pattern("::ffff:192.0.2.1").matches(&host("192.0.2.1")));
    assert!(pattern("2001:db8::1").matches(&host("2001:db8:0:0::1")));
}

#[test]
fn an_authority_has_one_reading() {
    let read = |text: &str| text.parse::<Authority>().map(|one| (one.host.to_string(), one.port)).ok();
    let some = |host: &str, port| Some((host.to_owned(), port));
    assert_eq!(read("Example.COM"), some("example.com", None));
    assert_eq!(read("example.com.:8443"), some("example.com", Some(8443)));
    assert_eq!(read("192.0.2.1:80"), some("192.0.2.1", Some(80)));
    assert_eq!(read("[2001:db8::1]"), some("2001:db8::1", None));
    assert_eq!(read("[2001:db8::1]:22"), some("2001:db8::1", Some(22)));
    assert_eq!(read("[::ffff:127.0.0.1]:22"), some("127.0.0.1", Some(22)));
    for text in [
        "a.com:",
        "a.com:0",
        "a.com:+80",
        "a.com:080",
        "a.com:65536",
        "a.com:4 43",
        "a.com:443:80",
        "a.com:80@b.com:443",
        "u:p@a.com:443",
        ":443",
        "2001:db8::1",
        "2001:db8::1:443",
        "[2001:db8::1",
        "[2001:db8::1]443",
        "[2001:db8::1]:",
        "[fe80::1%25eth0]:80",
        "[v1.a]:80",
        "[]:80",
        "a.com:443/x",
    ] {
        assert_eq!(read(text), None, "{text:?}");
    }
}

#[test]
fn loopback_is_known_without_asking() {
    for text in
        ["localhost", "LOCALHOST.", "a.localhost", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::"]
    {
        assert!(host(text).is_loopback(), "{text}");
    }
    for text in ["localhost.example.com", "notlocalhost", "128.0.0.1", "::2"] {
        assert!(!host(text).is_loopback(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_pattern_survives_its_text_form(text in "(\\*\\.)?[a-z0-9_]{1,8}(\\.[a-z0-9]{1,8}){0,3}") {
        if let Ok(pattern) = text.parse::<HostPattern>() {
            prop_assert_eq!(pattern.to_string().parse::<HostPattern>().unwrap(), pattern);
        }
    }

    #[test]
    fn hosts_and_authorities_survive_their_text_form(text in "[a-fA-F0-9:.x\\[\\]-]{0,24}") {
        if let Ok(host) = text.parse::<Host>() {
            prop_assert_eq!(host.to_string().parse::<Host>().unwrap(), host);
        }
        if let Ok(authority) = text.parse::<Authority>() {
            prop_assert_eq!(authority.to_string().parse::<Authority>().unwrap(), authority);
        }
    }

    #[test]
    fn an_address_is_the_same_host_mapped_or_not(bits: u32) {
        let address = std::net::Ipv4Addr::from_bits(bits);
        prop_assert_eq!(host(&address.to_string()), Host::from(IpAddr::V6(address.to_ipv6_mapped())));
    }

    #[test]
    fn nothing_odd_ever_matches(text in ".*") {
        let tree = pattern("example.com,*.example.com");
        if text.parse().is_ok_and(|host| tree.matches(&host)) {
            let plain = text.trim_end_matches('.').to_ascii_lowercase();
            prop_assert!(plain == "example.com" || plain.ends_with(".example.com"));
            prop_assert!(plain.bytes().all(|b| b.is_ascii_graphic()));
        }
    }

    #[test]
    fn containment_agrees_with_matching(own in "(\\*\\.)?([ab]\\.){0,2}c", other in "([ab]\\.){0,2}c") {
        prop_assert_eq!(pattern(&own).contains(&pattern(&other)), pattern(&own).matches(&host(&other)));
    }
}
