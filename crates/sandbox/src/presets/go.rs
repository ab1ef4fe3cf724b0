//! Go: its module proxies and the database of checksums.

use serde::Deserialize;

use super::{Findings, Found, Outside, PresetError, Tool, Url};

/// What `go env -json` says (`go help environment`).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
struct Answer {
    goproxy: String,
    gosumdb: String,
}

pub(super) fn read(tool: &Tool, outside: &Outside<'_>) -> Result<Findings, PresetError> {
    let program = outside.program_of(tool)?;
    let text = outside.run(&program, &["env", "-json", "GOPROXY", "GOSUMDB"], &tool.passes)?;
    let answer = serde_json::from_str(&text)
        .map_err(|error| PresetError::Failed { program, why: format!("its answer is none: {error}") })?;
    Ok(findings(&answer))
}

/// `GOPROXY` is a list with commas or bars; `GOSUMDB` is a name, perhaps with a key and a URL of its own.
fn findings(answer: &Answer) -> Findings {
    let place = |url, kind, from: &str| Found { url, kind, from: from.to_owned(), configured: true };
    let words = || answer.goproxy.split([',', '|']);
    let mut places: Vec<Found> =
        words().filter_map(Url::read).map(|url| place(url, "proxy", "GOPROXY")).collect();
    let mut sums = answer.gosumdb.split_whitespace();
    let name = sums.next().and_then(|name| name.split('+').next()).filter(|name| *name != "off");
    let url = sums.next().and_then(Url::read);
    places.extend(
        url.or_else(|| Url::read(&format!("https://{}/", name?))).map(|url| place(url, "sums", "GOSUMDB")),
    );
    let direct = words().any(|word| word == "direct");
    let note = "modules that no proxy has are fetched from where they are kept: allow those hosts by name";
    let mut proxies = answer.goproxy.clone();
    for signed in words().filter(|word| Url::read(word).is_some_and(|url| url.signed_in)) {
        let plain = Url::read(signed).map(|url| url.text).unwrap_or_default();
        proxies = proxies.replace(signed, &plain);
    }
    Findings {
        places,
        notes: direct.then(|| note.to_owned()).into_iter().collect(),
        variables: vec![("GOPROXY".to_owned(), proxies), ("GOSUMDB".to_owned(), answer.gosumdb.clone())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_and_the_database_are_read() {
        let of = |goproxy: &str, gosumdb: &str| {
            let answer = Answer { goproxy: goproxy.to_owned(), gosumdb: gosumdb.to_owned() };
            let found = findings(&answer);
            let hosts = found.places.iter().map(|place| place.url.host.to_string()).collect::<Vec<_>>();
            (hosts.join(" "), found.notes.len(), found.variables[0].1.clone())
        };
        let two = "https://u:p@a.example,http://b.example:8080|direct";
        let plain = "https://a.example,http://b.example:8080|direct".to_owned();
        assert_eq!(of(two, "sums.example"), ("a.example b.example sums.example".into(), 1, plain));
        let keyed = "sums.example+key https://mirror.example/sums";
        assert_eq!(of("off", keyed), ("mirror.example".into(), 0, "off".into()));
        assert_eq!(of("direct", "off"), (String::new(), 1, "direct".into()));
    }
}
