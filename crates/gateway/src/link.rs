//! What gateway and keeper say to each other, over a socket between their processes.
//!
//! Each message is its length (4 bytes, little-endian) and its JSON. The keeper reads what the gateway says as something
//! that hostile bytes may have got hold of: it is bounded, and it can only be what is named here.

use std::collections::HashMap;
use std::future::Future;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redoma_audit::Event;
use redoma_audit::event::{Answer, Process};
use redoma_policy::{Host, ResolvedPolicy, Tier};
use rustix::net::RecvFlags;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};

use crate::{
    Approver, Ask, Authority, Credentials, Doors, Gateway, Inside, Recorder, Secret, Setup, Sink, Target, Who,
};

/// Serves as a process of its own, until the keeper says that the session is over.
///
/// # Errors
/// When there is no runtime, or a door cannot be served.
pub fn serve(parts: Parts, doors: Doors, keeper: UnixStream) -> io::Result<()> {
    let link = Link::new(keeper)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let Parts { policy, tier, who, inside, authority, upstream, credentials, decoys, recorder } = parts;
    let (sink, approver) = (Arc::clone(&link) as Arc<dyn Sink>, Arc::clone(&link) as Arc<dyn Approver>);
    runtime.block_on(async {
        let gateway = Gateway::new(Setup {
            policy,
            tier,
            sink,
            approver,
            who,
            inside,
            authority,
            upstream,
            credentials,
            decoys,
            recorder,
        });
        gateway.serve(doors, link.finished()).await
    })
}

/// What a gateway in a process of its own is made of.
pub struct Parts {
    /// What is enforced.
    pub policy: ResolvedPolicy,
    /// How the sandbox is confined.
    pub tier: Tier,
    /// Who knows the processes inside.
    pub who: Arc<dyn Who>,
    /// The way inside.
    pub inside: Arc<dyn Inside>,
    /// The session's certificate authority.
    pub authority: Authority,
    /// The proxy that connections go out by.
    pub upstream: Option<redoma_policy::Upstream>,
    /// What is put in on the way.
    pub credentials: Credentials,
    /// The values of decoys, by their names.
    pub decoys: Vec<(String, Secret<String>)>,
    /// Who keeps what goes over the wire, if somebody does.
    pub recorder: Option<Arc<Recorder>>,
}

/// What the gateway tells the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub enum Told {
    /// Something for the record.
    Event(Box<Event>),
    /// A question for a person.
    Question(Question),
}

/// A question for a person, with a number for its answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Question {
    /// Its number.
    pub number: u64,
    /// Where it wants to go.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// Who wants to.
    pub process: Option<Process>,
    /// How long the question stands.
    pub timeout: Duration,
}

/// What the keeper tells the gateway.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Answer { number: u64, answer: Answer },
    Finish,
}

/// The gateway's end.
pub struct Link {
    out: Mutex<UnixStream>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    next: AtomicU64,
    finish: Notify,
}

/// The keeper's end.
#[derive(Debug)]
pub struct Keeper {
    stream: UnixStream,
    received: Vec<u8>,
}

/// Larger than any event: texts in events are capped.
const LARGEST: usize = 4 << 20;
const LENGTH: usize = size_of::<u32>();

impl Link {
    /// Starts a thread that listens to the keeper.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn new(stream: UnixStream) -> io::Result<Arc<Self>> {
        let incoming = stream.try_clone()?;
        let link = Arc::new(Self {
            out: Mutex::new(stream),
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
            finish: Notify::new(),
        });
        let listener = Arc::clone(&link);
        std::thread::Builder::new().name("link".to_owned()).spawn(move || listener.listen(incoming))?;
        Ok(link)
    }

    /// Waits until the keeper says that the session is over.
    pub async fn finished(&self) {
        self.finish.notified().await;
    }

    fn listen(&self, mut incoming: UnixStream) {
        while let Ok(order) = read(&mut incoming) {
            match order {
                Order::Answer { number, answer } => {
                    if let Some(asker) = lock(&self.waiting).remove(&number) {
                        let _ = asker.send(answer);
                    }
                }
                Order::Finish => self.finish.notify_one(),
            }
        }
        // Without a keeper there is no record, and without a record nothing passes.
        std::process::exit(1);
    }

    fn say(&self, told: &Told) {
        let frame = frame(told);
        if lock(&self.out).write_all(&frame).is_err() {
            std::process::exit(1);
        }
    }
}

impl Sink for Link {
    fn tell(&self, event: Event) {
        self.say(&Told::Event(Box::new(event)));
    }
}

impl Approver for Link {
    fn ask(&self, ask: Ask) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (asker, answer) = oneshot::channel();
        lock(&self.waiting).insert(number, asker);
        let Ask { target: Target { host, port }, process, timeout } = ask;
        self.say(&Told::Question(Question { number, host, port, process, timeout }));
        Box::pin(async move {
            // The keeper knows the time-out and answers in time; this one is for a keeper that is stopped.
            let answered = tokio::time::timeout(timeout + Duration::from_secs(1), answer).await;
            lock(&self.waiting).remove(&number);
            answered.ok().and_then(Result::ok).unwrap_or(Answer::Expired)
        })
    }
}

impl Keeper {
    /// Both ends: this one, and the one for [`Link::new`] in the gateway's process.
    ///
    /// # Errors
    /// When there can be no sockets.
    pub fn pair() -> io::Result<(Self, UnixStream)> {
        let (stream, gateway) = UnixStream::pair()?;
        Ok((Self { stream, received: Vec::new() }, gateway))
    }

    /// What has arrived, without waiting; none once the gateway is gone.
    ///
    /// # Errors
    /// `InvalidData` for what no gateway says.
    pub fn receive(&mut self) -> io::Result<Option<Vec<Told>>> {
        let mut chunk = vec![0; 64 << 10];
        loop {
            match rustix::net::recv(&self.stream, &mut chunk[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) if self.received.is_empty() => return Ok(None),
                Ok((0, _)) => return self.take().map(Some),
                Ok((length, _)) => self.received.extend_from_slice(&chunk[..length]),
                Err(rustix::io::Errno::AGAIN) => return self.take().map(Some),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNRESET) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
            if self.received.len() > LARGEST {
                return self.take().map(Some);
            }
        }
    }

    /// Answers a question.
    pub fn answer(&mut self, number: u64, answer: Answer) {
        // A gateway that is gone needs no answer.
        let _ = self.stream.write_all(&frame(&Order::Answer { number, answer }));
    }

    /// Tells the gateway to let what goes on come to its end, and to leave.
    pub fn finish(&mut self) {
        let _ = self.stream.write_all(&frame(&Order::Finish));
    }

    /// All messages that are there as a whole.
    fn take(&mut self) -> io::Result<Vec<Told>> {
        let (mut told, mut used) = (Vec::new(), 0);
        while let Some((message, rest)) = split(&self.received[used..])? {
            told.push(serde_json::from_slice(message)?);
            used = self.received.len() - rest.len();
        }
        self.received.drain(..used);
        Ok(told)
    }
}

impl AsFd for Keeper {
    /// Readable when the gateway said something, or is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn frame(message: &impl Serialize) -> Vec<u8> {
    let mut frame = vec![0; LENGTH];
    // Writing into memory; nothing here has keys that are no text.
    let _ = serde_json::to_writer(&mut frame, message);
    let length = u32::try_from(frame.len() - LENGTH).unwrap_or(u32::MAX);
    frame[..LENGTH].copy_from_slice(&length.to_le_bytes());
    frame
}

/// The first message and what follows it; none if it is not there as a whole.
fn split(bytes: &[u8]) -> io::Result<Option<(&[u8], &[u8])>> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    Ok(rest.split_at_checked(checked(*length)?))
}

fn checked(length: [u8; LENGTH]) -> io::Result<usize> {
    let length = u32::from_le_bytes(length) as usize;
    if length > LARGEST { Err(io::ErrorKind::InvalidData.into()) } else { Ok(length) }
}

fn read<T: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<T> {
    let mut length = [0; LENGTH];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; checked(length)?];
    stream.read_exact(&mut message)?;
    Ok(serde_json::from_slice(&message)?)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
