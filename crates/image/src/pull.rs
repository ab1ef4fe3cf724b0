//! Fetches an image from a registry.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::digest::Hasher;
use crate::manifest::{Descriptor, Document, Manifest, Plan};
use crate::registry::Registry;
use crate::store::Staging;
use crate::{Blob, Credentials, Digest, Error, Fetched, Images, Limits, Reference};

/// Blobs that are fetched at once.
const AT_ONCE: usize = 3;
/// How often it is asked whether to stop.
const PULSE: Duration = Duration::from_millis(100);

/// How far a fetch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It is known what has to be fetched.
    Planned {
        /// Layers of the image.
        layers: usize,
        /// Those of them that are not here.
        missing: usize,
        /// Bytes to fetch.
        bytes: u64,
    },
    /// So many more bytes came.
    Received(u64),
    /// A layer is here, verified.
    Layer,
}

impl Images {
    /// Fetches what is missing of an image as verified blobs, which then have to be unpacked and published.
    ///
    /// A name with a digest gets exactly that, a tag what the registry says now; either way the digest of what came is kept. Of an
    /// index the entry for this kind of machine is taken. `watch` is told how far it is; once `cancel` is set, it stops soon.
    ///
    /// # Errors
    /// Those of reaching the registry, and of what it says not being what it should be. Nothing is left then.
    pub fn fetch(
        &self,
        reference: &Reference,
        credentials: Credentials,
        limits: &Limits,
        watch: &mut dyn FnMut(Progress),
        cancel: &AtomicBool,
    ) -> Result<Fetched, Error> {
        let staging = Staging::new(self)?;
        let registry = Arc::new(Registry::new(reference, credentials, limits)?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| Error::Runtime { source })?;
        runtime.block_on(async {
            let fetch = async {
                let plan = resolve(&registry, reference, limits).await?;
                let missing = plan.missing(self);
                let bytes = missing.iter().map(|(_, layer)| layer.size).sum();
                watch(Progress::Planned { layers: plan.layers.len(), missing: missing.len(), bytes });
                let blobs = fetch_all(&registry, missing, staging.folder(), watch).await?;
                Ok((plan.image, blobs))
            };
            let (image, blobs) = tokio::select! {
                fetched = fetch => fetched?,
                () = asked(cancel) => return Err(Error::Cancelled),
            };
            Ok(Fetched { image, blobs, staging })
        })
    }
}

/// Returns when `cancel` is set.
async fn asked(cancel: &AtomicBool) {
    let mut pulse = interval(PULSE);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !cancel.load(Ordering::Relaxed) {
        pulse.tick().await;
    }
}

/// What the image consists of.
async fn resolve(registry: &Registry, reference: &Reference, limits: &Limits) -> Result<Plan, Error> {
    let text = registry.manifest(&reference.version()).await?;
    let digest = Digest::of(&text);
    check("the manifest", reference.digest(), digest)?;
    let (manifest, manifest_digest, index) = match Document::parse(&text)? {
        Document::Image(manifest) => (manifest, digest, None),
        Document::Index(index) => {
            let entry = index.pick()?;
            (entry_of(registry, entry).await?, entry.digest, Some(digest))
        }
    };
    let config = registry.document(manifest.config.digest).await?;
    manifest.config.check("the configuration", config.len() as u64, Digest::of(&config))?;
    let mut plan = Plan::new(reference.clone(), manifest_digest, &manifest, &config, limits)?;
    plan.image.index = index;
    Ok(plan)
}

async fn entry_of(registry: &Registry, entry: &Descriptor) -> Result<Manifest, Error> {
    let text = registry.manifest(&entry.digest.to_string()).await?;
    entry.check("the manifest", text.len() as u64, Digest::of(&text))?;
    match Document::parse(&text)? {
        Document::Image(manifest) => Ok(manifest),
        Document::Index(_) => {
            Err(Error::Document { document: "index", why: "it leads to another index".into() })
        }
    }
}

fn check(what: &'static str, expected: Option<Digest>, actual: Digest) -> Result<(), Error> {
    match expected {
        Some(expected) if expected != actual => Err(Error::Content { what, expected, actual }),
        _ => Ok(()),
    }
}

/// Fetches some at once. The first that fails ends the others.
async fn fetch_all(
    registry: &Arc<Registry>,
    missing: Vec<(crate::DiffId, Descriptor)>,
    folder: &Path,
    watch: &mut dyn FnMut(Progress),
) -> Result<Vec<Blob>, Error> {
    let (sender, mut receiver) = unbounded_channel();
    let mut blobs = Vec::with_capacity(missing.len());
    let mut waiting = missing.into_iter().map(|(diff_id, layer)| {
        let file = folder.join(format!("{}.blob", diff_id.hex()));
        blobs.push(Blob { file: file.clone(), diff_id });
        fetch_blob(Arc::clone(registry), layer, file, sender.clone())
    });
    let mut tasks = JoinSet::new();
    waiting.by_ref().take(AT_ONCE).for_each(|task| drop(tasks.spawn(task)));
    while let Some(done) = next(&mut tasks, &mut receiver, watch).await {
        // A task that panics is a defect of this program: it goes on in whoever waits.
        done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
        watch(Progress::Layer);
        waiting.by_ref().take(1).for_each(|task| drop(tasks.spawn(task)));
    }
    drop(waiting);
    Ok(blobs)
}

/// The next task that is done; meanwhile, what comes is told.
async fn next(
    tasks: &mut JoinSet<Result<(), Error>>,
    receiver: &mut UnboundedReceiver<u64>,
    watch: &mut dyn FnMut(Progress),
) -> Option<Result<Result<(), Error>, tokio::task::JoinError>> {
    loop {
        tokio::select! {
            // What came before a task was done is told before.
            biased;
            Some(bytes) = receiver.recv() => watch(Progress::Received(bytes)),
            done = tasks.join_next() => return done,
        }
    }
}

/// Fetches one blob; as soon as it is longer than it should be, no more of it is read.
async fn fetch_blob(
    registry: Arc<Registry>,
    layer: Descriptor,
    path: PathBuf,
    sender: UnboundedSender<u64>,
) -> Result<(), Error> {
    let mut response = registry.blob(layer.digest).await?;
    let mut file = File::create(&path).map_err(|source| Error::Create { path: path.clone(), source })?;
    let mut hasher = Hasher::new();
    while let Some(piece) = response.chunk().await.map_err(|error| registry.broken(error))? {
        hasher.update(&piece);
        if hasher.bytes() > layer.size {
            break;
        }
        file.write_all(&piece).map_err(|source| Error::Write { path: path.clone(), source })?;
        // Nobody listens any more: the fetch is over.
        let _ = sender.send(piece.len() as u64);
    }
    let size = hasher.bytes();
    layer.check("the layer", size, hasher.finish())
}

#[cfg(test)]
mod tests;
