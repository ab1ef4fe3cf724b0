//! What passes unseen while a capture is made: bytes go through this process, which the kernel alone would not show them to.

use std::io;

use rustix::net::{Shutdown, shutdown};
use tokio::net::TcpStream;

use crate::Flow;
use crate::opaque::MaySend;

const BUFFER: usize = 64 << 10;

/// Moves bytes both ways until both sides have said all.
pub(crate) async fn both(
    client: &TcpStream,
    server: &TcpStream,
    flow: &Flow,
    may_send: &MaySend<'_>,
) -> io::Result<()> {
    let out = pass(client, server, |bytes| {
        if !may_send(bytes.len() as u64) {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        flow.sent(bytes);
        Ok(())
    });
    let back = pass(server, client, |bytes| {
        flow.received(bytes);
        Ok(())
    });
    tokio::try_join!(out, back).map(drop)
}

/// `note` sees bytes before they are passed on, and may refuse them.
async fn pass(from: &TcpStream, to: &TcpStream, note: impl Fn(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        from.readable().await?;
        match from.try_read(&mut buffer) {
            Ok(0) => {
                // A peer that is gone already needs no end.
                let _ = shutdown(to, Shutdown::Write);
                return Ok(());
            }
            Ok(length) => {
                note(&buffer[..length])?;
                write_all(to, &buffer[..length]).await?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn write_all(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
