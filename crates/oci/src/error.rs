use bollard::errors::Error;
use redoma_sandbox::driver::{DriverError, DriverName};

/// What an engine said, for the user.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` calls")]
pub(crate) fn engine(error: Error) -> DriverError {
    let hint = match &error {
        Error::DockerResponseServerError { .. } => "look into the engine's own log",
        _ => "docker info",
    };
    DriverError::Engine { why: words(&error), hint: hint.into() }
}

/// Its words alone, without our client's.
pub(crate) fn words(error: &Error) -> String {
    match error {
        Error::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        Error::DockerStreamError { error } => error.trim().to_owned(),
        other => other.to_string(),
    }
}

/// The status of an answer that is an error.
pub(crate) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

pub(crate) fn unsupported(what: impl Into<String>, hint: impl Into<String>) -> DriverError {
    DriverError::Unsupported { driver: DriverName::Oci, what: what.into(), hint: hint.into() }
}
