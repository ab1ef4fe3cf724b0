//! What holds before anything is confined.

use redoma_tests::Home;

#[test]
fn version_names_the_program() {
    let home = Home::new();
    let ran = home.project("p").redoma(["version"]).run().ok();
    assert!(ran.out().starts_with("redoma "), "{ran:?}");
}

#[test]
fn a_mistyped_flag_starts_nothing() {
    let home = Home::new();
    let project = home.project("p");
    let ran = project.redoma(["run", "--nte", "none"]).command(["touch", "started"]).run();
    assert_ne!(ran.code(), 0, "{ran:?}");
    assert!(!project.path().join("started").exists());
}

#[test]
fn doctor_names_the_tier_and_answers_in_json() {
    let home = Home::new();
    let ran = home.project("p").redoma(["doctor", "--json"]).run();
    let text = ran.json().to_string();
    assert!(text.contains("\"full\"") || text.contains("\"landlock\""), "{ran:?}");
}

#[test]
fn completions_know_the_commands() {
    let home = Home::new();
    let ran = home.project("p").redoma(["completions", "bash"]).run().ok();
    assert!(ran.out().contains("doctor"), "{ran:?}");
}
