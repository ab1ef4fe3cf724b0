//! Sandboxes that outlive one command, beside containers.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::bed::Bed;
use super::clock::time;
use super::measure::{Contender, Mark, Row, alternate};
use crate::process::{find, output};

/// The bytes of a sandbox whose freezing is to cost nothing.
const GIBIBYTE: &str = "1024";

fn redoma(bed: &Bed, words: &[&str]) -> Command {
    let mut command = bed.command(bed.home(), bed.program("redoma"));
    command.args(["--quiet", "sandbox"]).args(words);
    command
}

fn docker(bed: &Bed, words: &[&str]) -> Command {
    let mut command = bed.command(bed.home(), "docker");
    // A client without its engine's address would ask another one.
    command.envs(std::env::vars_os().filter(|(name, _)| name == "DOCKER_HOST")).args(words);
    command
}

/// An image of busybox, made here: nothing is pulled.
fn docker_image(bed: &Bed) -> Result<()> {
    output(&mut docker(bed, &["info"])).context("docker does not answer")?;
    let busybox = find("busybox").context("busybox is missing")?;
    let root = bed.out().join("busybox-root/bin");
    fs::create_dir_all(&root)?;
    for name in ["busybox", "true", "sleep", "sh"] {
        fs::copy(&busybox, root.join(name))?;
    }
    let archive = bed.out().join("busybox.tar");
    let from = bed.out().join("busybox-root");
    output(Command::new("tar").arg("-C").arg(from).arg("-cf").arg(&archive).arg("."))?;
    output(docker(bed, &["import"]).arg(&archive).arg("redoma-bench:1"))?;
    Ok(())
}

/// A command in a sandbox, or container, in which something lives already.
pub(crate) fn exec(bed: &Bed, divisor: usize) -> Result<Row> {
    output(&mut redoma(bed, &["create", "--name", "bench-exec"]))?;
    output(&mut redoma(bed, &["exec", "-d", "bench-exec", "--", "sleep", "600"]))?;
    let mut container = docker_image(bed).and_then(|()| {
        let run = ["run", "-d", "--rm", "--name", "redoma-bench", "redoma-bench:1", "/bin/sleep", "600"];
        output(&mut docker(bed, &run)).map(drop)
    });
    let contenders = vec![
        Contender::process("redoma", || redoma(bed, &["exec", "bench-exec", "--", "true"])),
        Contender::by("docker exec", || {
            std::mem::replace(&mut container, Ok(()))?;
            time(&mut docker(bed, &["exec", "redoma-bench", "/bin/true"]))
        }),
    ];
    let marks = vec![Mark::Within(Duration::from_millis(3), "redoma"), Mark::Faster(20.0, "docker exec")];
    let row = alternate("exec in a live sandbox", 50 / divisor, contenders, marks);
    output(&mut redoma(bed, &["rm", "bench-exec"]))?;
    // There is none where docker was missing.
    let _ = output(&mut docker(bed, &["rm", "-f", "redoma-bench"]));
    Ok(row)
}

/// All of a sandbox's life, for one command.
pub(crate) fn life(bed: &Bed, divisor: usize) -> Result<Row> {
    let mut image = docker_image(bed);
    let contenders = vec![
        Contender::by("redoma", || {
            let steps: [&[&str]; 3] = [
                &["create", "--name", "bench-life"],
                &["exec", "bench-life", "--", "true"],
                &["rm", "bench-life"],
            ];
            steps.iter().map(|words| time(&mut redoma(bed, words))).sum()
        }),
        Contender::by("docker run --rm", || {
            std::mem::replace(&mut image, Ok(()))?;
            time(&mut docker(bed, &["run", "--rm", "redoma-bench:1", "/bin/true"]))
        }),
    ];
    let marks = vec![Mark::Faster(30.0, "docker run --rm")];
    Ok(alternate("create + exec + destroy", 30 / divisor, contenders, marks))
}

/// Freezing a stopped sandbox that holds a gibibyte, and making another from it.
pub(crate) fn freeze(bed: &Bed, divisor: usize) -> Result<Row> {
    let fill = format!("dd if=/dev/zero of=/root/large bs=1M count={GIBIBYTE} 2>/dev/null");
    output(&mut redoma(bed, &["create", "--name", "bench-freeze"]))?;
    output(&mut redoma(bed, &["exec", "bench-freeze", "--", "sh", "-c", &fill]))?;
    // A first snapshot ends the keeper, which only waits for the next command.
    output(&mut redoma(bed, &["snapshot", "bench-freeze", "bench-0"]))?;
    let (mut taken, mut forked) = (0, 0);
    let contenders = vec![
        Contender::by("snapshot", || {
            taken += 1;
            time(&mut redoma(bed, &["snapshot", "bench-freeze", &format!("bench-{taken}")]))
        }),
        Contender::by("fork", || {
            forked += 1;
            time(&mut redoma(bed, &["fork", "bench-0", "--name", &format!("bench-fork-{forked}")]))
        }),
    ];
    let within = Duration::from_millis(10);
    let marks = vec![Mark::Within(within, "snapshot"), Mark::Within(within, "fork")];
    let row = alternate(
        "snapshot and fork of a stopped sandbox that holds 1 GiB",
        10 / divisor.min(5),
        contenders,
        marks,
    );
    output(&mut redoma(bed, &["rm", "--all"]))?;
    let mut prune = bed.command(bed.home(), bed.program("redoma"));
    output(prune.args(["--quiet", "snapshot", "prune", "--max-age", "1ms"]))?;
    Ok(row)
}
