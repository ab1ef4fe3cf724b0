//! What resolution does, on a machine made of names.

use std::path::Path;

use crate::testbed::{Machine, project, system, user};
use crate::{
    Access, ByteSize, CommandLine, Effect, Layer, NetworkDefault, NoticeKind, Place, Question,
    ResolvedPolicy, Tier, Workspace,
};

fn effect(policy: &ResolvedPolicy, question: Question<'_>) -> Effect {
    policy.decide(&question, Tier::Full).effect
}

fn reads(policy: &ResolvedPolicy, path: &str) -> bool {
    effect(policy, Question::Read(Path::new(path))) == Effect::Allow
}

/// Whether a write reaches the host.
fn writes(policy: &ResolvedPolicy, path: &str) -> bool {
    let verdict = policy.decide(&Question::Write(Path::new(path)), Tier::Full);
    verdict.effect == Effect::Allow && verdict.place == Place::Host
}

fn default() -> ResolvedPolicy {
    Machine::with(&[]).resolve(&[], &CommandLine::default())
}

#[test]
fn the_default_profile_grants_the_project_and_hides_credentials() {
    let policy = default();
    assert!(writes(&policy, "/home/u/p/src/main.rs"));
    assert!(reads(&policy, "/usr/bin/git") && !writes(&policy, "/usr/bin/git"));
    assert!(reads(&policy, "/etc/passwd") && !reads(&policy, "/etc/shadow"));
    for path in ["/home/u/.ssh/id_rsa", "/home/u/p/.env", "/home/u/p/a/.env.local", "/home/u/notes", "/root"]
    {
        assert!(!reads(&policy, path), "{path}");
    }
    assert!(reads(&policy, "/home/u/p/.env.example"));
    assert!(reads(&policy, "/home/u/p/.git/config") && !writes(&policy, "/home/u/p/.git/config"));
    assert!(writes(&policy, "/home/u/p/.git/index"));
    assert_eq!(policy.network.default, NetworkDefault::Deny);
    assert!(!policy.network.needs_gateway());
}

#[test]
fn verdicts_name_the_rule_and_its_line() {
    let policy = default();
    let verdict = policy.decide(&Question::Read(Path::new("/etc/passwd")), Tier::Full);
    assert!(verdict.rule.unwrap().to_string().starts_with("profile base:"));
    let machine = Machine::with(&["/srv/data/"]);
    let policy =
        machine.resolve(&[user("[filesystem]\nread = [\n  \"/srv/data\",\n]\n")], &CommandLine::default());
    let verdict = policy.decide(&Question::Read(Path::new("/srv/data/x")), Tier::Full);
    assert_eq!(verdict.rule.unwrap().to_string(), "user policy.toml:3");
}

#[test]
fn what_is_not_granted_is_absent_or_private() {
    let policy = default();
    let place = |question| policy.decide(&question, Tier::Full).place;
    let path = Path::new("/home/u/notes");
    let create = Question::Create { path, below: Path::new("/home/u") };
    assert_eq!(place(Question::Read(path)), Place::Absent);
    assert_eq!(place(create), Place::Private);
    assert_eq!(policy.decide(&create, Tier::Landlock).place, Place::Absent);
    assert_eq!(place(Question::Read(Path::new("/home/u/.ssh/id_rsa"))), Place::Covered);
    let path = Path::new("/home/u/p/.vscode/tasks.json");
    assert_eq!(place(Question::Create { path, below: Path::new("/home/u/p") }), Place::Quarantined);
}

#[test]
fn a_glob_means_what_exists_and_an_exact_rule_what_may_come() {
    let policy = default();
    let project = Path::new("/home/u/p");
    let create_below = |below: &Path, path: &str| {
        policy.decide(&Question::Create { path: Path::new(path), below }, Tier::Full)
    };
    let create = |path: &str| create_below(project, path);
    assert_eq!(create("/home/u/p/.env").place, Place::Host);
    assert_eq!(create("/home/u/p/.mcp.json").place, Place::Quarantined);
    assert_eq!(create("/home/u/p/.git/hooks/post-checkout").effect, Effect::Deny);
    // A folder with such a name is the session's own when it is made inside, and hidden when it is not.
    assert_eq!(create("/home/u/p/.env/x").place, Place::Host);
    assert_eq!(create_below(&project.join(".env"), "/home/u/p/.env/x").effect, Effect::Deny);
}

#[test]
fn a_denied_link_hides_what_it_leads_to() {
    let machine = Machine::with(&["/data/keys/k", "/home/u/.aws -> /data/keys", "/data/other"]);
    let typed = CommandLine { read: vec!["/data".into()], ..CommandLine::default() };
    let policy = machine.resolve(&[], &typed);
    assert!(reads(&policy, "/data/other"));
    assert!(!reads(&policy, "/data/keys/k"));
}

#[test]
fn links_on_the_way_to_a_grant_become_aliases() {
    let machine = Machine::with(&["/big/cargo/bin/", "/home/u/.cargo -> /big/cargo"]);
    let policy = machine.resolve(&[], &CommandLine::default());
    assert!(reads(&policy, "/big/cargo/bin/x"));
    let links: Vec<_> = policy.filesystem.aliases.iter().map(|alias| alias.link.to_str().unwrap()).collect();
    assert_eq!(links, ["/bin", "/home/u/.cargo"]);
}

#[test]
fn a_variable_must_not_widen_a_grant_to_everything() {
    for value in ["/", "/home", "/home/u", "relative", "/home/u/../.."] {
        let policy = Machine::with(&[]).var("CARGO_HOME", value).resolve(&[], &CommandLine::default());
        assert!(!reads(&policy, "/home/u/notes") && !reads(&policy, "/srv"), "{value}");
    }
}

#[test]
fn dotenv_rules_hold_in_every_folder_a_person_grants() {
    let machine = Machine::with(&["/srv/other/.env", "/home/u/.cargo/"]);
    let policy = machine.resolve(&[user("[filesystem]\nread = [\"/srv/other\"]")], &CommandLine::default());
    assert!(reads(&policy, "/srv/other/x") && !reads(&policy, "/srv/other/.env"));
    let roots = policy.filesystem.walk_roots();
    assert_eq!(roots, [Path::new("/home/u/p"), Path::new("/srv/other")]);
}

#[test]
fn an_exception_holds_for_its_own_list_only() {
    let mine = user("[filesystem]\ndeny = [\"**/.env.example\"]");
    let policy = Machine::with(&[]).resolve(&[mine], &CommandLine::default());
    assert!(!reads(&policy, "/home/u/p/.env.example"));
}

#[test]
fn a_built_in_entry_can_be_left_out_by_its_text_but_nobody_elses() {
    let lift = user("[filesystem]\nwithout = [\"~/.config/gh/\"]\nread = [\"~/.config/gh\"]");
    let machine = Machine::with(&["/home/u/.config/gh/hosts.yml"]);
    let policy = machine.resolve(std::slice::from_ref(&lift), &CommandLine::default());
    assert!(reads(&policy, "/home/u/.config/gh/hosts.yml"));
    let firm = system("[filesystem]\ndeny = [\"~/.config/gh/\"]");
    let policy = machine.resolve(&[firm, lift], &CommandLine::default());
    assert!(!reads(&policy, "/home/u/.config/gh/hosts.yml"));
}

#[test]
fn the_file_of_a_secret_is_out_of_reach_whatever_is_granted() {
    let secret = |path: &str| {
        let text = format!("[secrets.A]\nfrom = \"file\"\npath = \"{path}\"\nhosts = [\"a.example\"]");
        let machine = Machine::with(&["/home/u/p/token", "/home/u/p/link -> /home/u/p/token"]);
        machine.resolve(&[user(&text)], &CommandLine::default())
    };
    let policy = secret("/home/u/p/token");
    assert!(!reads(&policy, "/home/u/p/token") && reads(&policy, "/home/u/p/other"));
    let policy = secret("/home/u/p/link");
    assert!(!reads(&policy, "/home/u/p/token"), "where a link leads");
    assert!(reads(&secret("/home/u/elsewhere"), "/home/u/p/token"));
}

#[test]
fn redomas_own_folders_are_out_of_reach_whatever_is_granted() {
    let machine = Machine::with(&["/home/u/.config/redoma/keys/k", "/home/u/.local/state/redoma/audit/a"]);
    let typed = CommandLine {
        write: vec!["/home/u".into()],
        profile: Some("empty".into()),
        ..CommandLine::default()
    };
    let policy = machine.resolve(&[], &typed);
    assert!(writes(&policy, "/home/u/x"));
    assert!(!reads(&policy, "/home/u/.config/redoma/keys/k"));
    assert!(!writes(&policy, "/home/u/.local/state/redoma/audit/a"));
}

#[test]
fn an_untrusted_project_is_heard_only_where_it_narrows() {
    let text = r#"
        [filesystem]
        read = ["/srv"]
        write = ["."]
        deny = ["secret"]
        [network]
        default = "allow"
        [[network.rule]]
        host = "evil.example"
        action = "allow"
        [environment]
        pass = ["GITHUB_TOKEN"]
        set = { LD_PRELOAD = "x.so" }
        [kernel]
        nested_userns = true
        [limits]
        pids = 100000
        memory = "1GiB"
        [agent]
        name = "claude"
    "#;
    let machine = Machine::with(&["/srv/x"]);
    let policy = machine.resolve(&[project(false, text)], &CommandLine::default());
    assert!(!reads(&policy, "/srv/x") && !reads(&policy, "/home/u/p/secret"));
    assert_eq!(policy.network.default, NetworkDefault::Deny);
    assert!(policy.network.rules.is_empty() && policy.environment.set.is_empty() && policy.agent.is_none());
    assert_eq!(effect(&policy, Question::Env("GITHUB_TOKEN")), Effect::Deny);
    assert!(!policy.kernel.nested_userns);
    assert_eq!((policy.limits.pids, policy.limits.memory), (Some(4096), Some(ByteSize(1 << 30))));
    let ignored = policy.notices.iter().filter(|notice| notice.kind == NoticeKind::Untrusted).count();
    assert_eq!(ignored, 7, "{:#?}", policy.notices);

    let policy = machine.resolve(&[project(true, text)], &CommandLine::default());
    assert!(reads(&policy, "/srv/x") && policy.kernel.nested_userns && policy.agent.is_some());
    assert_eq!(policy.network.default, NetworkDefault::Allow);
}

#[test]
fn the_ceiling_holds_for_every_later_layer() {
    let bound = system(
        r#"
        [limits]
        pids = 100
        [ceiling]
        write = ["~/p"]
        hosts = ["example.com,*.example.com"]
        private = false
        nested_userns = false
    "#,
    );
    let wide = user(
        r#"
        [filesystem]
        write = ["~/q"]
        [network]
        default = "allow"
        [[network.rule]]
        host = "other.org"
        action = "allow"
        [[network.rule]]
        host = "api.example.com"
        action = "allow"
        private = true
        [kernel]
        nested_userns = true
        [limits]
        pids = 5000
    "#,
    );
    let machine = Machine::with(&["/home/u/q/"]);
    let policy = machine.resolve(&[wide, bound.clone()], &CommandLine::default());
    assert!(writes(&policy, "/home/u/p/x") && !writes(&policy, "/home/u/q/x"));
    assert_eq!(policy.network.default, NetworkDefault::Deny);
    assert_eq!(policy.network.rules.len(), 1);
    assert!(!policy.network.rules[0].private);
    assert!(!policy.kernel.nested_userns);
    assert_eq!(policy.limits.pids, Some(100));
    let typed = CommandLine { net: Some(NetworkDefault::Allow), ..CommandLine::default() };
    let error = machine.try_resolve(&[bound], &typed).unwrap_err();
    assert!(error.to_string().contains("ceiling"), "{error}");
}

#[test]
fn a_ceiling_for_writing_leaves_what_it_takes_readable() {
    let bound = system("[ceiling]\nwrite = [\"~/p\"]\n");
    let typed = [user("[filesystem]\nwrite = [\"~/q\"]")];
    let policy = Machine::with(&["/home/u/q/"]).resolve(&[bound, typed[0].clone()], &CommandLine::default());
    assert!(reads(&policy, "/home/u/q/x") && !writes(&policy, "/home/u/q/x"));
}

#[test]
fn a_linked_worktree_can_commit_but_not_arm_the_main_one() {
    let machine =
        Machine::with(&["/home/u/main/.git/config", "/home/u/main/.git/worktrees/p/HEAD", "/home/u/p/.git"])
            .git_dir("/home/u/main/.git")
            .git_dir("/home/u/main/.git/worktrees/p");
    let policy = machine.resolve(&[], &CommandLine::default());
    assert!(writes(&policy, "/home/u/main/.git/objects/ab/cd"));
    assert!(writes(&policy, "/home/u/main/.git/worktrees/p/index"));
    for path in
        ["config", "hooks/pre-commit", "worktrees/p/commondir", "worktrees/q/gitdir", "modules/a/b/hooks/x"]
    {
        assert!(!writes(&policy, &format!("/home/u/main/.git/{path}")), "{path}");
    }
    assert!(!writes(&policy, "/home/u/p/.git"));
    assert!(!reads(&policy, "/home/u/main/src"));
}

#[test]
fn typed_values_win_and_relative_ones_mean_where_one_stands() {
    let machine = Machine::with(&["/home/u/p/sub/"]);
    let typed = CommandLine {
        profile: Some("strict".into()),
        write: vec!["sub".into()],
        workspace: Some(Workspace::Overlay),
        pids: Some(7),
        env: vec![("A".into(), Some("1".into())), ("GITHUB_TOKEN".into(), None)],
        ..CommandLine::default()
    };
    let policy = machine.resolve(&[user("[limits]\npids = 9")], &typed);
    assert_eq!(policy.limits.pids, Some(7));
    assert_eq!(policy.profile, "strict");
    assert_eq!(effect(&policy, Question::Env("GITHUB_TOKEN")), Effect::Allow);
    let change = policy.decide(&Question::Write(Path::new("/home/u/p/sub/x")), Tier::Full);
    assert_eq!(change.place, Place::ChangeSet);
    assert!(!writes(&policy, "/home/u/p/x"));
}

#[test]
fn grants_are_pruned_to_the_widest() {
    let machine = Machine::with(&["/home/u/p/a/", "/srv/a/", "/srv/b/"]);
    let mine = user("[filesystem]\nread = [\"/home/u/p/a\", \"/srv\"]\nwrite = [\"/srv/a\"]");
    let policy = machine.resolve(&[mine], &CommandLine::default());
    let theirs = policy.filesystem.grants.iter().filter(|grant| !grant.system);
    let theirs: Vec<_> = theirs.map(|grant| (grant.path.to_str().unwrap(), grant.access)).collect();
    assert_eq!(theirs, [("/home/u/p", Access::Write), ("/srv", Access::Read), ("/srv/a", Access::Write)]);
}

#[test]
fn a_preset_brings_folders_hosts_and_variables() {
    let typed = CommandLine { agent: "claude".parse().ok(), ..CommandLine::default() };
    let policy = Machine::with(&["/home/u/.claude/settings.json"]).resolve(&[], &typed);
    assert!(writes(&policy, "/home/u/.claude/projects/x"));
    assert!(!writes(&policy, "/home/u/.claude/settings.json"));
    let connect = |host: &str| effect(&policy, Question::Connect { host: &host.parse().unwrap(), port: 443 });
    assert_eq!(connect("api.anthropic.com"), Effect::Allow);
    assert_eq!(connect("statsig.anthropic.com"), Effect::Deny);
    assert_eq!(effect(&policy, Question::Env("ANTHROPIC_API_KEY")), Effect::Allow);
    assert_eq!(effect(&policy, Question::Env("OPENAI_API_KEY")), Effect::Deny);
    assert!(policy.network.needs_gateway());
    let off = CommandLine { net: Some(NetworkDefault::None), ..typed };
    assert!(!Machine::with(&[]).resolve(&[], &off).network.needs_gateway());
}

#[test]
fn a_preset_says_when_its_folder_is_missing() {
    let typed = CommandLine { agent: "codex".parse().ok(), ..CommandLine::default() };
    let policy = Machine::with(&[]).resolve(&[], &typed);
    let notice = policy.notices.iter().find(|notice| notice.kind == NoticeKind::Missing).unwrap();
    assert_eq!(notice.hint.as_deref(), Some("mkdir -p /home/u/.codex"));
}

#[test]
fn a_file_extends_a_file_beside_it() {
    let machine = Machine::with(&["/srv/a/"]).file(
        "/home/u/.config/redoma/base.toml",
        "extends = \"strict\"\n[filesystem]\nread = [\"/srv/a\"]\n",
        true,
    );
    let policy = machine.resolve(&[user("extends = \"./base.toml\"")], &CommandLine::default());
    assert_eq!(policy.profile, "strict");
    assert!(reads(&policy, "/srv/a/x"));
    let verdict = policy.decide(&Question::Read(Path::new("/srv/a")), Tier::Full);
    assert_eq!(verdict.rule.unwrap().layer, Layer::User);
}
