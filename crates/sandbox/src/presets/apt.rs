//! apt: the archives of this machine (sources.list(5)).

use std::path::PathBuf;

use super::{Findings, Found, Outside, PresetError, Url};

pub(super) fn read(outside: &Outside<'_>) -> Result<Findings, PresetError> {
    let folder = outside.root.join("etc/apt");
    let listed = folder.join("sources.list.d").read_dir().into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.path()).collect();
    files.sort();
    files.insert(0, folder.join("sources.list"));
    let mut places = Vec::new();
    for file in files {
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let urls = match (extension, outside.read(&file)?) {
            ("list", Some(text)) => one_line_style(&text),
            ("sources", Some(text)) => stanzas(&text),
            _ => continue,
        };
        let from = file.display().to_string();
        places.extend(urls.into_iter().map(|url| Found {
            url,
            kind: "archive",
            from: from.clone(),
            configured: true,
        }));
    }
    Ok(Findings { places, ..Findings::default() })
}

/// `deb [options] URI suite component…`
fn one_line_style(text: &str) -> Vec<Url> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| line.starts_with("deb ") || line.starts_with("deb-src ")).flat_map(Url::all).collect()
}

/// The deb822 style: stanzas of fields, a field going on in lines that begin with a space.
fn stanzas(text: &str) -> Vec<Url> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let stanzas = lines.split(|line| line.trim().is_empty());
    let enabled = stanzas.filter(|stanza| {
        !stanza.iter().any(|line| line.to_ascii_lowercase().replace(' ', "") == "enabled:no")
    });
    enabled.flat_map(uris).collect()
}

fn uris(stanza: &[&str]) -> Vec<Url> {
    let is_uris = |line: &&str| line.to_ascii_lowercase().starts_with("uris:");
    let Some(at) = stanza.iter().position(is_uris) else { return Vec::new() };
    let more = stanza[at + 1..].iter().take_while(|line| line.starts_with([' ', '\t']));
    std::iter::once(&stanza[at]).chain(more).flat_map(|line| Url::all(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(urls: &[Url]) -> Vec<String> {
        urls.iter().map(|url| format!("{}:{}", url.host, url.port)).collect()
    }

    #[test]
    fn both_styles_are_read() {
        let list = "# deb http://old.example/ x\ndeb [signed-by=/k] https://a.example/debian stable main # http://no.example\n\
            deb-src http://b.example:8080/ x\ndeb cdrom:[Debian]/ x\n";
        assert_eq!(hosts(&one_line_style(list)), ["a.example:443", "b.example:8080"]);
        let sources = "Types: deb\nURIs: http://a.example/debian\n https://b.example\nSuites: x\n\nTypes: deb\nEnabled: no\n\
            URIs: http://off.example\n\n# URIs: http://comment.example\nuris: http://c.example\n";
        assert_eq!(hosts(&stanzas(sources)), ["a.example:80", "b.example:443", "c.example:80"]);
    }
}
