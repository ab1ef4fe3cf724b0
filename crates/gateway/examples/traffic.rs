//! A server and clients to measure a gateway with: `traffic serve ADDRESS CERTIFICATE KEY`, then beside it or in a sandbox
//! `traffic requests HOST:PORT COUNT BYTES [h2]`, `traffic handshakes HOST:PORT SECONDS`, `traffic bulk HOST:PORT MIB` (plain TCP,
//! echoed), `traffic idle HOST:PORT COUNT`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it talks to who measures")]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", address, certificate, key] => serve(address, certificate, key).await,
        ["requests", target, count, bytes] => requests(target, count, bytes, false).await,
        ["requests", target, count, bytes, "h2"] => requests(target, count, bytes, true).await,
        ["handshakes", target, seconds] => handshakes(target, seconds.parse().unwrap()).await,
        ["bulk", target, mib] => bulk(target, mib.parse().unwrap()).await,
        ["idle", target, count] => idle(target, count.parse().unwrap()).await,
        _ => println!("see the beginning of the source"),
    }
}

/// HTTPS on port 443 of the address, and an echo on 7: `/N` is answered with N bytes.
async fn serve(address: &str, certificate: &str, key: &str) {
    let certificates = CertificateDer::pem_file_iter(certificate).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let mut config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let echo = TcpListener::bind((address, 7)).await.unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = echo.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    let listener = TcpListener::bind((address, 443)).await.unwrap();
    println!("up");
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let (stream, service) = (TokioIo::new(stream), service_fn(answer));
            let _ = match h2 {
                true => {
                    hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .serve_connection(stream, service)
                        .await
                }
                false => hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await,
            };
        });
    }
}

async fn answer(request: Request<hyper::body::Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let length = request.uri().path().trim_start_matches('/').parse().unwrap_or(0);
    let _ = request.into_body().collect().await;
    Ok(Response::new(Full::new(Bytes::from(vec![b'x'; length]))))
}

fn connector(protocol: &[u8]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    TlsConnector::from(Arc::new(config))
}

async fn connect(connector: &TlsConnector, target: &str) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(target).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let name = target.split(':').next().unwrap().to_owned();
    connector.connect(ServerName::try_from(name).unwrap(), stream).await.unwrap()
}

/// One after the other on one connection.
async fn requests(target: &str, count: &str, bytes: &str, h2: bool) {
    let count: usize = count.parse().unwrap();
    let connector = connector(if h2 { b"h2" } else { b"http/1.1" });
    let stream = TokioIo::new(connect(&connector, target).await);
    let name = target.split(':').next().unwrap();
    let url = if h2 { format!("https://{name}/{bytes}") } else { format!("/{bytes}") };
    let request = || Request::get(&url).header("host", name).body(Full::<Bytes>::default()).unwrap();
    let mut times = Vec::with_capacity(count);
    let begun = Instant::now();
    if h2 {
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..count {
            let one = Instant::now();
            let answer = sender.send_request(request()).await.unwrap();
            answer.into_body().collect().await.unwrap();
            times.push(one.elapsed());
        }
    } else {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..count {
            let one = Instant::now();
            sender.ready().await.unwrap();
            let answer = sender.send_request(request()).await.unwrap();
            answer.into_body().collect().await.unwrap();
            times.push(one.elapsed());
        }
    }
    let all = begun.elapsed();
    times.sort_unstable();
    let (median, late) = (times[count / 2], times[count * 99 / 100]);
    println!("{:.0} requests/s, p50 {median:?}, p99 {late:?}", count as f64 / all.as_secs_f64());
}

async fn handshakes(target: &str, seconds: u64) {
    let connector = Arc::new(connector(b"http/1.1"));
    let until = Instant::now() + Duration::from_secs(seconds);
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let (connector, target) = (Arc::clone(&connector), target.to_owned());
            tokio::spawn(async move {
                let mut done = 0u64;
                while Instant::now() < until {
                    let mut stream = connect(&connector, &target).await;
                    let _ = stream.shutdown().await;
                    done += 1;
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for worker in workers {
        done += worker.await.unwrap();
    }
    println!("{} handshakes/s", done / seconds);
}

async fn bulk(target: &str, mib: u64) {
    let stream = TcpStream::connect(target).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let begun = Instant::now();
    let sender = tokio::spawn(async move {
        let chunk = vec![0u8; 1 << 20];
        for _ in 0..mib {
            write.write_all(&chunk).await.unwrap();
        }
        write.shutdown().await.unwrap();
    });
    let (mut chunk, mut received) = (vec![0u8; 1 << 20], 0u64);
    loop {
        match read.read(&mut chunk).await.unwrap() {
            0 => break,
            length => received += length as u64,
        }
    }
    sender.await.unwrap();
    assert_eq!(received, mib << 20);
    println!("{:.0} MiB/s each way", mib as f64 / begun.elapsed().as_secs_f64());
}

/// Opens connections, sees that each works, and keeps them until standard input ends.
async fn idle(target: &str, count: usize) {
    let begun = Instant::now();
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(target).await.unwrap();
        stream.write_all(b"\0").await.unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        streams.push(stream);
    }
    println!("{count} open after {:?}", begun.elapsed());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}
