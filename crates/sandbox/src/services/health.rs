//! Whether a service works.

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use super::model::{Health, Probe};
use crate::attach;
use crate::driver::{Command, Driver, DriverError, Info};

/// Tries once.
///
/// # Errors
/// Why it does not work, in words.
pub(super) fn works(driver: &dyn Driver, info: &Info, health: &Health) -> Result<(), String> {
    match &health.probe {
        Probe::Command(argv) => succeeds(driver, info, argv, health.timeout),
        Probe::Port(port) => answers(driver, info, *port, health.timeout).map(drop),
        Probe::Http { port, path } => {
            let connection = answers(driver, info, *port, health.timeout)?;
            status(connection, path, health.timeout)
        }
    }
}

fn succeeds(driver: &dyn Driver, info: &Info, argv: &[String], timeout: Duration) -> Result<(), String> {
    let run = || -> Result<i32, DriverError> {
        let argv = argv.iter().map(OsString::from).collect();
        let command = Command { argv, timeout: Some(timeout), ..Command::default() };
        let null = attach::nowhere()?;
        let null = null.as_fd();
        let mut process = driver.exec(&info.spec.id, &command, &attach::on([null; 3]))?;
        Ok(attach::wait(&mut *process)?.exit_code())
    };
    match run() {
        Ok(0) => Ok(()),
        Ok(code) => Err(format!("{} exits with {code}", argv.join(" "))),
        Err(error) => Err(error.to_string()),
    }
}

/// A connection to a port inside: by the driver where it can, else by a published port.
fn answers(driver: &dyn Driver, info: &Info, port: u16, timeout: Duration) -> Result<TcpStream, String> {
    if let Some(dialing) = driver.dialing() {
        return dialing.dial(&info.spec.id, port).map_err(|error| error.to_string());
    }
    let published = info.spec.publish.iter().find(|publish| publish.inside.get() == port);
    let published =
        published.ok_or_else(|| format!("port {port} is not published, and cannot be reached otherwise"))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, published.outside.get()));
    let connection = TcpStream::connect_timeout(&address, timeout).map_err(|error| error.to_string())?;
    stays(&connection).map_err(|error| error.to_string())?;
    Ok(connection)
}

/// Whoever relays a published port accepts first and hangs up when nobody listens inside.
fn stays(connection: &TcpStream) -> std::io::Result<()> {
    const A_MOMENT: Duration = Duration::from_millis(100);
    connection.set_read_timeout(Some(A_MOMENT))?;
    match connection.peek(&mut [0]) {
        Ok(0) => Err(ErrorKind::ConnectionReset.into()),
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Of an answer that only its first line counts of.
const MOST: u64 = 1 << 20;

fn status(mut connection: TcpStream, path: &str, timeout: Duration) -> Result<(), String> {
    let ask = |connection: &mut TcpStream| -> std::io::Result<String> {
        connection.set_read_timeout(Some(timeout))?;
        connection.set_write_timeout(Some(timeout))?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes())?;
        let mut line = [0; 12];
        connection.read_exact(&mut line)?;
        // A server whose answer nobody takes would complain.
        let _ = std::io::copy(&mut connection.take(MOST), &mut std::io::sink());
        Ok(String::from_utf8_lossy(&line).into_owned())
    };
    // `HTTP/1.1 200`: RFC 9112, section 4.
    let line = ask(&mut connection).map_err(|error| error.to_string())?;
    match line.rsplit_once(' ').and_then(|(_, code)| code.parse::<u16>().ok()) {
        Some(200..400) if line.starts_with("HTTP/1.") => Ok(()),
        _ => Err(format!("{path} answers {line:?}")),
    }
}
