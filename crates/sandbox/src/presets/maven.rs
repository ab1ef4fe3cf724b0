//! Maven: mirrors and repositories of its settings, else the repository of the model that every project inherits from.

use std::path::{Path, PathBuf};

use roxmltree::{Document, Node};

use super::{Findings, Found, Outside, PresetError, Tool, Url, jar};

/// What every project inherits (maven-model-builder, "Super POM").
const SUPER_POM: &str = "org/apache/maven/model/pom-4.0.0.xml";

pub(super) fn read(tool: &Tool, outside: &Outside<'_>) -> Result<Findings, PresetError> {
    let program = outside.program_of(tool)?;
    let home = program.canonicalize().ok().and_then(|real| Some(real.parent()?.parent()?.to_owned()));
    let home = home.unwrap_or_default();
    let mut places = Vec::new();
    let mut replaced = false;
    for file in [outside.home.join(".m2/settings.xml"), home.join("conf/settings.xml")] {
        let Some(text) = outside.read(&file)? else { continue };
        let from = file.display().to_string();
        let xml = parse(&text, &file)?;
        places.extend(urls(&xml, "mirror", &from, true).chain(urls(&xml, "repository", &from, true)));
        places.extend(urls(&xml, "pluginRepository", &from, true));
        replaced |= elements(&xml, "mirror").any(|mirror| mirrors_central(child(mirror, "mirrorOf")));
    }
    if !replaced && let Some((jar, text)) = super_pom(&home)? {
        let xml = parse(&text, &jar)?;
        places.extend(urls(&xml, "repository", "maven's own default", false));
    }
    let configured = places.iter().any(|place: &Found| place.configured);
    let note = "inside, maven does not know its settings, which are hidden";
    let notes = configured.then(|| note.to_owned()).into_iter().collect();
    Ok(Findings { places, notes, ..Findings::default() })
}

fn parse<'a>(text: &'a str, file: &Path) -> Result<Document<'a>, PresetError> {
    let failed =
        |error: roxmltree::Error| PresetError::Unreadable { path: file.to_owned(), why: error.to_string() };
    Document::parse(text).map_err(failed)
}

fn elements<'a>(xml: &'a Document<'a>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    xml.descendants().filter(move |node| node.tag_name().name() == name)
}

fn child<'a>(node: Node<'a, 'a>, name: &str) -> &'a str {
    let found = node.children().find(|child| child.tag_name().name() == name);
    found.and_then(|child| child.text()).map(str::trim).unwrap_or_default()
}

/// Places of one kind. A blocked mirror is one that nothing is to be fetched from.
fn urls<'a>(
    xml: &'a Document<'a>,
    name: &'a str,
    from: &'a str,
    configured: bool,
) -> impl Iterator<Item = Found> + 'a {
    let open = elements(xml, name).filter(|node| child(*node, "blocked") != "true");
    let urls = open.filter_map(|node| Url::read(child(node, "url")));
    urls.map(move |url| Found { url, kind: "repository", from: from.to_owned(), configured })
}

/// Whether a mirror stands in for the default repository (Maven's guide to mirror settings).
fn mirrors_central(pattern: &str) -> bool {
    let words: Vec<&str> = pattern.split(',').map(str::trim).collect();
    !words.contains(&"!central") && words.iter().any(|word| matches!(*word, "*" | "central" | "external:*"))
}

/// The model's text and the jar it is in: of two names for the same library, either will do.
fn super_pom(home: &Path) -> Result<Option<(PathBuf, String)>, PresetError> {
    let Ok(folder) = home.join("lib").read_dir() else { return Ok(None) };
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("maven-model-builder") && name.ends_with(".jar")
    };
    let Some(jar) = folder.flatten().map(|entry| entry.path()).find(named) else { return Ok(None) };
    let failed = |why: String| PresetError::Unreadable { path: jar.clone(), why };
    let bytes = std::fs::read(&jar).map_err(|error| failed(error.to_string()))?;
    let Some(file) = jar::file(&bytes, SUPER_POM) else { return Ok(None) };
    String::from_utf8(file)
        .map(|text| Some((jar.clone(), text)))
        .map_err(|_| failed("it is not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_and_repositories_are_read_and_comments_are_not() {
        let text = "<settings xmlns='http://schema.example/settings'><mirrors>\
            <!-- <mirror><mirrorOf>*</mirrorOf><url>http://comment.example</url></mirror> -->\
            <mirror><mirrorOf>external:http:*</mirrorOf><url>http://0.0.0.0/</url><blocked>true</blocked></mirror>\
            <mirror><mirrorOf> central </mirrorOf><url> https://mirror.example/maven </url></mirror></mirrors>\
            <profiles><profile><repositories><repository><url>https://own.example/</url></repository></repositories>\
            </profile></profiles></settings>";
        let xml = Document::parse(text).unwrap();
        let of =
            |name| urls(&xml, name, "x", true).map(|found| found.url.host.to_string()).collect::<Vec<_>>();
        assert_eq!(of("mirror"), ["mirror.example"]);
        assert_eq!(of("repository"), ["own.example"]);
        let patterns: Vec<_> = elements(&xml, "mirror").map(|mirror| child(mirror, "mirrorOf")).collect();
        assert_eq!(patterns, ["external:http:*", "central"]);
    }

    #[test]
    fn a_mirror_stands_in_for_the_default_or_not() {
        for (pattern, is) in [
            ("*", true),
            ("central", true),
            ("a, central", true),
            ("external:*", true),
            ("*,!central", false),
            ("a", false),
        ] {
            assert_eq!(mirrors_central(pattern), is, "{pattern}");
        }
    }
}
