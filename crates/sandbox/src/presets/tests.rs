//! Tools made of shell scripts, on a machine made of folders.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::*;

struct Machine {
    _folder: tempfile::TempDir,
    root: PathBuf,
    vars: Vec<(OsString, OsString)>,
}

impl Machine {
    /// A home, a project, and a folder of programs.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home", "project/bin", "bin", "etc"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let machine = Self { _folder: folder, root, vars: Vec::new() };
        let path = format!("{}:{}", machine.at("project/bin"), machine.at("bin"));
        machine.var("PATH", &path)
    }

    fn at(&self, path: &str) -> String {
        self.root.join(path).display().to_string()
    }

    fn var(mut self, name: &str, value: &str) -> Self {
        self.vars.push((name.into(), value.into()));
        self
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A program that runs a script with the shell's own commands alone.
    fn program(&self, path: &str, script: &str) -> &Self {
        self.file(path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.root.join(path), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn outside(&self) -> Outside<'_> {
        Outside {
            home: Path::new(self.root.join("home").leak()),
            project: Path::new(self.root.join("project").leak()),
            vars: self.vars.clone(),
            root: &self.root,
        }
    }

    fn resolve(&self, name: &str) -> Result<Preset, PresetError> {
        resolve(name, &self.outside()).map(|preset| preset.expect("a preset"))
    }

    fn hosts(&self, name: &str) -> Vec<String> {
        let preset = self.resolve(name).unwrap();
        let hosts = preset.endpoints.iter().map(|endpoint| {
            let ports: Vec<String> = endpoint.ports.iter().map(ToString::to_string).collect();
            format!("{}:{}", endpoint.host, ports.join(","))
        });
        hosts.collect()
    }
}

#[test]
fn every_tool_of_the_table_says_how_it_is_asked() {
    for (name, tool) in TOOLS.iter() {
        assert!(!tool.program.is_empty(), "{name}");
        assert_eq!(matches!(tool.reader, Reader::Asked), !tool.ask.is_empty(), "{name}");
        assert_eq!(tool.format == asked::Format::Json, !tool.keys.is_empty(), "{name}");
        assert!(!redoma_policy::git_services().any(|service| service == name), "{name}");
    }
    for name in ["npm", "pip", "cargo", "go", "maven", "apt", "git", "yarn", "pnpm", "uv", "gem", "github"] {
        assert!(is_preset(name), "{name}");
    }
    assert!(!is_preset("example.com") && !is_preset(""));
}

#[test]
fn npm_is_asked_outside_the_project_and_with_few_variables() {
    let machine = Machine::new().var("NODE_OPTIONS", "--require ./evil.js").var("npm_config_audit", "false");
    machine.program("project/bin/npm", "echo '{\"registry\": \"https://evil.example/\"}'");
    machine.program(
        "bin/npm",
        r#"echo "{\"registry\": \"https://u:p@registry.example/npm/\", \"@own:registry\": \"http://127.0.0.1:4873/\",
            \"init-module\": \"https://no.example\", \"where\": \"$PWD ${NODE_OPTIONS-unset} $npm_config_audit $*\"}""#,
    );
    let preset = machine.resolve("npm").unwrap();
    assert_eq!(machine.hosts("npm"), ["127.0.0.1:4873", "registry.example:443"]);
    assert!(preset.endpoints[0].reaches().is_some() && preset.endpoints.iter().all(|one| one.private));
    assert_eq!(
        preset.variables,
        [("npm_config_registry".to_owned(), "https://registry.example/npm/".to_owned())]
    );
    assert_eq!(preset.notes.len(), 2, "{:?}", preset.notes);
    assert!(!format!("{preset:?}").contains("u:p"));
    let outside = machine.outside();
    let program = outside.program("npm").unwrap();
    let answer = outside.run(&program, &["x"], &TOOLS["npm"].passes).unwrap();
    assert!(answer.contains("\"where\": \"/ unset false x\""), "{answer}");
}

#[test]
fn a_tool_that_is_only_in_the_project_is_not_run() {
    let machine = Machine::new();
    machine.program("project/bin/npm", &format!("echo ran > {}", machine.at("ran")));
    assert!(matches!(machine.resolve("npm"), Err(PresetError::NoProgram { .. })));
    // Nor is one that a link outside leads to.
    symlink(machine.at("project/bin/npm"), machine.at("bin/npm")).unwrap();
    assert!(matches!(machine.resolve("npm"), Err(PresetError::NoProgram { .. })));
    assert!(!machine.root.join("ran").exists());
}

#[test]
fn configuration_that_leads_into_the_project_is_refused() {
    let machine = Machine::new();
    machine.program("bin/npm", "echo '{\"registry\": \"https://registry.example/\"}'");
    machine.file("project/npmrc", "registry=https://evil.example/");
    assert!(machine.resolve("npm").is_ok());
    symlink(machine.at("project/npmrc"), machine.at("home/.npmrc")).unwrap();
    assert!(matches!(machine.resolve("npm"), Err(PresetError::InProject { .. })));
}

#[test]
fn variables_that_lead_into_the_project_do_not_pass() {
    let machine = Machine::new();
    let file = machine.at("project/npmrc");
    let machine = machine.var("npm_config_userconfig", &file).var("npm_config_other", "kept");
    machine.program(
        "bin/npm",
        r#"echo "{\"registry\": \"https://${npm_config_userconfig-unset}.${npm_config_other}.example/\"}""#,
    );
    assert_eq!(machine.hosts("npm"), ["unset.kept.example:443"]);
}

#[test]
fn a_tool_that_fails_is_an_error_and_never_an_empty_answer() {
    let machine = Machine::new();
    machine.program("bin/npm", "exit 3");
    let error = machine.resolve("npm").unwrap_err();
    assert!(matches!(error, PresetError::Failed { .. }) && error.to_string().contains("3"), "{error}");
    machine.program("bin/npm", "echo '{}'");
    assert!(matches!(machine.resolve("npm"), Err(PresetError::NoHosts { .. })));
}

#[test]
fn versions_of_yarn_differ_in_what_they_know() {
    let machine = Machine::new();
    let script = "[ $3 = registry ] && echo https://one.example || echo undefined";
    machine.program("bin/yarn", script);
    assert_eq!(machine.hosts("yarn"), ["one.example:443"]);
    machine.program("bin/yarn", "[ $3 = npmRegistryServer ] && echo https://two.example || exit 1");
    assert_eq!(machine.hosts("yarn"), ["two.example:443"]);
}

#[test]
fn pips_default_is_read_from_its_module_unless_an_index_is_configured() {
    let machine = Machine::new();
    let module = "Main = PackageIndex(\"https://index.example/\", file_storage_domain=\"files.example\")\n";
    machine.file("lib/pip/_internal/models/index.py", module);
    let version = format!("echo 'pip 1 from {} (python 3)'", machine.at("lib/pip"));
    let script =
        |configured: &str| format!("case $1 in --version) {version};; *) printf \"{configured}\";; esac");
    machine.program("bin/pip", &script(""));
    assert_eq!(machine.hosts("pip"), ["index.example:443", "files.example:443"]);
    assert!(machine.resolve("pip").unwrap().variables.is_empty(), "the tool inside knows its default");
    machine.program("bin/pip", &script("global.index-url='http://mirror.example:8080/simple'\\n"));
    assert_eq!(machine.hosts("pip"), ["mirror.example:8080"]);
    let told = machine.resolve("pip").unwrap().variables;
    assert_eq!(told, [("PIP_INDEX_URL".to_owned(), "http://mirror.example:8080/simple".to_owned())]);
    fs::remove_file(machine.root.join("bin/pip")).unwrap();
    machine.program("bin/pip3", &script(""));
    assert_eq!(machine.hosts("pip").len(), 2, "some machines have pip3 alone");
}

#[test]
fn uvs_default_is_in_its_program_and_pip_knows_where_the_files_are() {
    let machine = Machine::new();
    machine.program("bin/uv", "exit 1\0https://index.example/simple/\0https://docs.example/other");
    assert_eq!(machine.hosts("uv"), ["index.example:443"]);
    assert_eq!(machine.resolve("uv").unwrap().notes.len(), 1);
    let module = "Main = PackageIndex(\"https://index.example/\", file_storage_domain=\"files.example\")\n";
    machine.file("lib/pip/_internal/models/index.py", module);
    machine.program("bin/pip", &format!("echo 'pip 1 from {} (python 3)'", machine.at("lib/pip")));
    assert_eq!(machine.hosts("uv"), ["index.example:443", "files.example:443"]);
    machine.file("etc/uv/uv.toml", "index-url = \"https://machine.example/\"\n");
    assert_eq!(machine.hosts("uv"), ["machine.example:443"]);
    machine.file("home/.config/uv/uv.toml", "[[index]]\nurl = \"https://user.example/\"\ndefault = true\n");
    assert_eq!(machine.hosts("uv"), ["user.example:443"]);
    let machine = machine.var("UV_DEFAULT_INDEX", "https://var.example/");
    assert_eq!(machine.hosts("uv"), ["var.example:443"]);
}

#[test]
fn cargos_default_is_in_its_program_and_its_cache_says_where_the_crates_are() {
    let machine = Machine::new();
    machine.program("bin/cargo", "exit 1\0sparse+https://index.packages.example/x");
    assert_eq!(machine.hosts("cargo"), ["index.packages.example:443"]);
    let config = "home/.cargo/registry/index/index.packages.example-0123456789abcdef/config.json";
    machine.file(config, "{\"dl\": \"https://static.packages.example/crates\"}");
    assert_eq!(machine.hosts("cargo"), ["index.packages.example:443", "static.packages.example:443"]);
    // A session may have written it: only the index's own domain counts.
    machine.file(config, "{\"dl\": \"https://evil.example/crates\"}");
    assert_eq!(machine.hosts("cargo"), ["index.packages.example:443"]);
    assert!(machine.resolve("cargo").unwrap().notes[0].contains("evil.example"));
    let mirror = "[source.built-in]\nreplace-with = \"m\"\n[source.m]\nregistry = \"sparse+https://mirror.example/\"\n";
    machine.file("home/.cargo/config.toml", mirror);
    assert_eq!(machine.hosts("cargo"), ["mirror.example:443"]);
}

#[test]
fn behind_rustups_proxy_the_real_cargo_is_read() {
    let machine = Machine::new();
    machine.file("toolchain/cargo", "\0sparse+https://index.packages.example/\0");
    machine.program("bin/rustup", &format!("echo {}", machine.at("toolchain/cargo")));
    symlink("rustup", machine.at("bin/cargo")).unwrap();
    assert_eq!(machine.hosts("cargo"), ["index.packages.example:443"]);
}

#[test]
fn go_says_its_proxies() {
    let machine = Machine::new();
    let answer = r#"{"GOPROXY": "https://proxy.example,direct", "GOSUMDB": "sums.example"}"#;
    machine.program("bin/go", &format!("[ \"$PWD $GOTOOLCHAIN\" = '/ local' ] && echo '{answer}'"));
    assert_eq!(machine.hosts("go"), ["proxy.example:443", "sums.example:443"]);
    assert_eq!(machine.resolve("go").unwrap().variables[0].1, "https://proxy.example,direct");
}

#[test]
fn apt_reads_its_archives() {
    let machine = Machine::new();
    machine.file("etc/apt/sources.list", "deb http://a.example/debian stable main\n");
    machine.file("etc/apt/sources.list.d/b.sources", "Types: deb\nURIs: https://b.example/\n");
    machine.file("etc/apt/sources.list.d/c.list.save", "deb http://old.example/ x\n");
    assert_eq!(machine.hosts("apt"), ["a.example:80", "b.example:443"]);
}

#[test]
fn presets_are_taken_out_of_a_list_and_the_rest_stays() {
    let machine = Machine::new();
    machine.program("bin/npm", "echo '{\"registry\": \"https://registry.example/\"}'");
    let expanded = |texts: &[&str]| {
        let allow = texts.iter().map(|text| (*text).to_owned()).collect();
        let typed = CommandLine { allow, ..CommandLine::default() };
        let expanded = expand(&typed, &machine.outside()).unwrap();
        let names: Vec<_> = expanded.presets.into_iter().map(|preset| preset.name).collect();
        (expanded.allow.join(" "), names.join(" "))
    };
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    assert_eq!(expanded(&["npm", "a.example,*.b.example"]), pair("a.example,*.b.example", "npm"));
    assert_eq!(expanded(&["npm,a.example,github"]), pair("a.example", "npm github"));
    assert_eq!(expanded(&["a.example,", "npm:443"]), pair("a.example, npm:443", ""));
}
