//! YAML as a tree with lines. Tags are refused, and what aliases come to is bounded.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::Text;
use crate::services::error::ServicesError;

/// A part of the file.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Without quotes it may mean a number, a boolean or nothing.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

const DEEPEST: usize = 32;
/// Aliases count for what they come to.
const MOST_NODES: usize = 20_000;

/// The only document of the text.
pub(super) fn read(text: &Text<'_>) -> Result<Node, ServicesError> {
    let mut reader =
        Reader { text, parser: Parser::new_from_str(text.text), anchors: BTreeMap::new(), nodes: 0 };
    let root = loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
            (Event::StreamEnd, _) => return Err(text.wrong(None, "it is empty", "redoma man up")),
            (event, line) => break reader.node(event, line, 0)?,
        }
    };
    loop {
        match reader.next()? {
            (Event::DocumentEnd | Event::Nothing, _) => {}
            (Event::StreamEnd, _) => return Ok(root),
            (_, line) => return Err(text.wrong(Some(line), "a second document", "take it out")),
        }
    }
}

struct Reader<'r, 't> {
    text: &'r Text<'t>,
    parser: Parser<'t, saphyr_parser::StrInput<'t>>,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
}

impl<'t> Reader<'_, 't> {
    fn next(&mut self) -> Result<(Event<'t>, usize), ServicesError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, span.start.line())),
            Some(Err(error)) => {
                Err(self.text.wrong(Some(error.marker().line()), error.info(), "mend that line"))
            }
            None => Ok((Event::StreamEnd, 0)),
        }
    }

    fn node(&mut self, event: Event<'t>, line: usize, depth: usize) -> Result<Node, ServicesError> {
        let wrong = |what: &str| self.text.wrong(Some(line), what, "write it plainly");
        self.nodes += 1;
        if depth > DEEPEST || self.nodes > MOST_NODES {
            return Err(wrong("it is too deep or too large"));
        }
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => (*anchor, tag.is_some()),
            _ => (0, false),
        };
        if tag {
            return Err(wrong("tags (`!…`) are not known"));
        }
        let value = match event {
            Event::Scalar(text, style, ..) => {
                Value::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain }
            }
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.map(depth)?,
            Event::Alias(of) => {
                let known = self.anchors.get(&of).cloned();
                let known = known.ok_or_else(|| wrong("an alias of something that is not whole"))?;
                self.nodes += known.count();
                return if self.nodes > MOST_NODES {
                    Err(self.text.wrong(Some(line), "aliases come to too much", "write it plainly"))
                } else {
                    Ok(known)
                };
            }
            _ => return Err(wrong("something is missing here")),
        };
        let node = Node { line, value };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Value, ServicesError> {
        let mut all = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(all)),
                (event, line) => all.push(self.node(event, line, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, ServicesError> {
        let mut all: Vec<(String, Node)> = Vec::new();
        loop {
            let (event, line) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(Value::Map(all));
            }
            let Value::Scalar { text: key, .. } = self.node(event, line, depth + 1)?.value else {
                return Err(self.text.wrong(Some(line), "a key that is no text", "write a text"));
            };
            if all.iter().any(|(known, _)| *known == key) {
                return Err(self.text.wrong(Some(line), format!("`{key}` is said twice"), "take one out"));
            }
            let (event, line) = self.next()?;
            let value = self.node(event, line, depth + 1)?;
            all.push((key, Node { line, ..value }));
        }
    }
}

impl Node {
    fn count(&self) -> usize {
        1 + match &self.value {
            Value::Scalar { .. } => 0,
            Value::List(all) => all.iter().map(Self::count).sum(),
            Value::Map(all) => all.iter().map(|(_, node)| node.count()).sum(),
        }
    }

    /// Nothing, as YAML's core schema writes it.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if ["", "~", "null", "Null", "NULL"].contains(&text.as_str()))
    }
}
