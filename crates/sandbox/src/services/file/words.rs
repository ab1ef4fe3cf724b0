//! What all kinds of files have in common: ports, mounts, lines of commands, times.

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use redoma_policy::{Publish, TimeSpan};

use super::Text;
use crate::services::error::ServicesError;
use crate::services::model::{Bind, Health, Probe};

impl Text<'_> {
    /// `8000:8000`, `8000`, or either after `127.0.0.1:`; with `/tcp` or without.
    pub(super) fn port(&self, typed: &str, line: Option<usize>) -> Result<Publish, ServicesError> {
        let wrong = |what: String, hint: &str| self.wrong(line, what, hint);
        let ports = match typed.rsplit_once('/') {
            Some((ports, "tcp")) => ports,
            Some((_, kind)) => {
                return Err(wrong(
                    format!("port {typed} is {kind}: only tcp can be published"),
                    "write /tcp",
                ));
            }
            None => typed,
        };
        let parts: Vec<&str> = ports.split(':').collect();
        let (outside, inside) = match parts.as_slice() {
            [both] | ["127.0.0.1" | "localhost", both] => (*both, *both),
            [outside, inside] | ["127.0.0.1" | "localhost", outside, inside] => (*outside, *inside),
            [address, .., _] => {
                let what = format!("port {typed} is published on {address}: only loopback can be");
                return Err(wrong(what, "leave the address out"));
            }
            [] => return Err(wrong(format!("port {typed} says nothing"), "write \"8000:8000\"")),
        };
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<NonZeroU16>().ok().filter(|_| digits);
            number.ok_or_else(|| {
                wrong(
                    format!("port {typed} is no port of this machine and one inside"),
                    "write \"8000:8000\"",
                )
            })
        };
        Ok(Publish { outside: number(outside)?, inside: number(inside)? })
    }

    /// `host:target`, with `:ro`, `:rw` or `:overlay`.
    pub(super) fn bind(&self, typed: &str, line: Option<usize>) -> Result<Bind, ServicesError> {
        let wrong = |what: &str| {
            self.wrong(line, format!("mount {typed} {what}"), "write \"./data:/data\" or \"./data:/data:ro\"")
        };
        let (paths, kind) = match typed.rsplit_once(':') {
            Some((paths, kind)) if paths.contains(':') => (paths, kind),
            _ => (typed, "rw"),
        };
        if !["ro", "rw", "overlay"].contains(&kind) {
            return Err(wrong(&format!("wants {kind:?}, which is none of ro, rw, overlay")));
        }
        let (from, to) = paths.rsplit_once(':').ok_or_else(|| wrong("does not say where inside"))?;
        if from.is_empty() || from.contains('\0') || to.contains('\0') {
            return Err(wrong("does not say which folder"));
        }
        Ok(Bind {
            from: from.to_owned(),
            to: PathBuf::from(to),
            writable: kind != "ro",
            overlay: kind == "overlay",
        })
    }

    /// One line as a shell would split it, without anything else that a shell does.
    pub(super) fn split(&self, typed: &str, line: Option<usize>) -> Result<Vec<String>, ServicesError> {
        let words = shlex::split(typed).filter(|words| !words.is_empty());
        words.ok_or_else(|| {
            self.wrong(
                line,
                format!("the command {typed:?} cannot be split into words"),
                "write it as a list",
            )
        })
    }

    pub(super) fn span(&self, typed: &str, line: Option<usize>) -> Result<Duration, ServicesError> {
        if typed == "0" || typed == "0s" {
            return Ok(Duration::ZERO);
        }
        let span: Result<TimeSpan, _> = typed.parse();
        span.map(|span| span.0).map_err(|error| self.wrong(line, error.to_string(), "write \"10s\""))
    }

    /// A health check, of a probe and times that may be said.
    pub(super) fn health(
        &self,
        probe: Probe,
        [interval, timeout, start]: [Option<&str>; 3],
        retries: Option<u32>,
        line: Option<usize>,
    ) -> Result<Health, ServicesError> {
        let mut health = Health::new(probe);
        let set = |into: &mut Duration, said: Option<&str>| -> Result<(), ServicesError> {
            if let Some(said) = said {
                *into = self.span(said, line)?;
            }
            Ok(())
        };
        set(&mut health.interval, interval)?;
        set(&mut health.timeout, timeout)?;
        set(&mut health.start, start)?;
        health.retries = retries.unwrap_or(health.retries);
        Ok(health)
    }
}

/// A command that a shell inside reads.
pub(super) fn by_shell(line: String) -> Vec<String> {
    vec!["/bin/sh".to_owned(), "-c".to_owned(), line]
}
