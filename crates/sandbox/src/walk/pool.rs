//! Work on a growing set of items with a few threads: each keeps its own stack and gives half away when another is idle.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Calls `visit` for every seed and for everything `visit` pushes, one thread per state, the caller's being the first.
/// Returns the states, or the first error, after which no further item is started.
pub(crate) fn drain<T, S, E>(
    seeds: Vec<T>,
    mut states: Vec<S>,
    visit: impl Fn(&mut S, T, &mut Vec<T>) -> Result<(), E> + Sync,
) -> Result<Vec<S>, E>
where
    T: Send,
    S: Send,
    E: Send,
{
    /// A walk that most often ends here is over before another thread would have begun.
    const ALONE: usize = 128;
    let mut seeds = seeds;
    for _ in 0..ALONE {
        let (Some(first), Some(item)) = (states.first_mut(), seeds.pop()) else { return Ok(states) };
        visit(first, item, &mut seeds)?;
    }
    let shared = Shared {
        queue: Mutex::new(Queue { items: seeds, waiting: 0, failure: None }),
        wake: Condvar::new(),
        hungry: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        threads: states.len(),
    };
    if let Some((first, others)) = states.split_first_mut() {
        std::thread::scope(|scope| {
            for state in others {
                scope.spawn(|| shared.work(state, &visit));
            }
            shared.work(first, &visit);
        });
    }
    let failure = shared.queue.into_inner().unwrap_or_else(PoisonError::into_inner).failure;
    failure.map_or(Ok(states), Err)
}

/// Two threads at most: walking is bound by the kernel's locks on folders, and the sandbox is built meanwhile.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(2))
}

struct Queue<T, E> {
    items: Vec<T>,
    waiting: usize,
    failure: Option<E>,
}

struct Shared<T, E> {
    queue: Mutex<Queue<T, E>>,
    wake: Condvar,
    /// How many threads have nothing to do: read without the lock on every item.
    hungry: AtomicUsize,
    failed: AtomicBool,
    threads: usize,
}

impl<T, E> Shared<T, E> {
    fn work<S>(&self, state: &mut S, visit: &impl Fn(&mut S, T, &mut Vec<T>) -> Result<(), E>) {
        let mut own = Vec::new();
        while let Some(item) = own.pop().or_else(|| self.take(&mut own)) {
            if let Err(error) = visit(state, item, &mut own) {
                self.lock().failure.get_or_insert(error);
                self.failed.store(true, Ordering::Relaxed);
                self.wake.notify_all();
            }
            if self.failed.load(Ordering::Relaxed) {
                return;
            }
            if self.hungry.load(Ordering::Relaxed) > 0 && own.len() > 1 {
                self.share(&mut own);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<T, E>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives away the older half: those are nearer the root, so there is likely more below them.
    fn share(&self, own: &mut Vec<T>) {
        let half = own.len() / 2;
        self.lock().items.extend(own.drain(..half));
        self.wake.notify_all();
    }

    /// Takes half of what is shared; waits while others may still share; `None` when all is done or failed.
    fn take(&self, own: &mut Vec<T>) -> Option<T> {
        let mut queue = self.lock();
        queue.waiting += 1;
        self.hungry.fetch_add(1, Ordering::Relaxed);
        loop {
            let over = queue.failure.is_some() || (queue.items.is_empty() && queue.waiting == self.threads);
            if over {
                self.wake.notify_all();
                return None;
            }
            if !queue.items.is_empty() {
                break;
            }
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.waiting -= 1;
        self.hungry.fetch_sub(1, Ordering::Relaxed);
        let keep = queue.items.len() / 2;
        own.extend(queue.items.drain(keep..));
        own.pop()
    }
}
