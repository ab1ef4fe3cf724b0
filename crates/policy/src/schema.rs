//! The JSON schema of the policy file, for editors and for the reference in the book.

use crate::file::PolicyFile;

/// The schema (JSON Schema 2020-12), pretty-printed with a final newline. Descriptions are the doc comments of the model.
#[must_use]
pub fn schema() -> String {
    let mut schema = schemars::schema_for!(PolicyFile);
    schema.insert("$id".to_owned(), "https://redoma.dev/schema/policy.json".into());
    format!("{:#}\n", schema.as_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value() -> serde_json::Value {
        serde_json::from_str(&schema()).unwrap()
    }

    #[test]
    fn every_section_and_key_is_described_and_no_other_is_allowed() {
        let schema = value();
        let sections =
            schema["$defs"].as_object().unwrap().iter().filter(|(name, _)| name.ends_with("Section"));
        let sections: Vec<_> = sections.map(|(name, section)| (name.as_str(), section)).collect();
        assert!(sections.len() >= 10);
        for (name, section) in sections.into_iter().chain([("PolicyFile", &schema)]) {
            assert_eq!(section["additionalProperties"], false, "{name}");
            for (key, property) in section["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{name}.{key}");
            }
        }
    }

    #[test]
    fn keys_of_the_design_are_there() {
        let schema = value();
        for key in [
            "extends",
            "agent",
            "filesystem",
            "network",
            "secrets",
            "environment",
            "limits",
            "audit",
            "kernel",
        ] {
            assert!(schema["properties"][key].is_object(), "{key}");
        }
        assert!(schema["$defs"]["RuleSection"]["properties"]["purpose"].is_null());
    }
}
