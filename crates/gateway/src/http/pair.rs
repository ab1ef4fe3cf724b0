//! Two futures in one task that wake each other without the runtime.
//!
//! What one connection hands to the other would otherwise send the task through the scheduler, which wakes another of its
//! threads to look for work: more than all else that a small request costs.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// What wakes one of two.
struct Half {
    woken: AtomicBool,
    task: Arc<Task>,
}

/// The task that both are in.
#[derive(Default)]
struct Task {
    /// Whether it looks for who was woken anyway.
    looking: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// Others have their turn as well.
const MOST_TURNS: usize = 32;

/// Polls both, each when it was woken, until the second is done. After each turn comes `then`, which hears whether the first is
/// over and says whether the second has to be polled again.
pub(super) async fn both<A, B>(
    mut first: Pin<&mut A>,
    mut second: Pin<&mut B>,
    mut then: impl FnMut(&mut Context<'_>, bool, Pin<&mut B>) -> bool,
) -> B::Output
where
    A: Future,
    B: Future,
{
    let task = Arc::<Task>::default();
    let half = || Arc::new(Half { woken: AtomicBool::new(true), task: Arc::clone(&task) });
    let (one, two) = (half(), half());
    let wakers = (Waker::from(Arc::clone(&one)), Waker::from(Arc::clone(&two)));
    let mut over = false;
    poll_fn(|cx| {
        task.begin(cx.waker());
        for _ in 0..MOST_TURNS {
            if one.take() && !over {
                over = first.as_mut().poll(&mut Context::from_waker(&wakers.0)).is_ready();
            }
            if two.take()
                && let Poll::Ready(done) = second.as_mut().poll(&mut Context::from_waker(&wakers.1))
            {
                return Poll::Ready(done);
            }
            if then(cx, over, second.as_mut()) {
                two.woken.store(true, Ordering::SeqCst);
            }
            if task.is_done(&[&one, &two]) {
                return Poll::Pending;
            }
        }
        task.looking.store(false, Ordering::SeqCst);
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

impl Task {
    fn begin(&self, waker: &Waker) {
        let mut own = self.waker();
        if own.as_ref().is_none_or(|own| !own.will_wake(waker)) {
            *own = Some(waker.clone());
        }
        drop(own);
        self.looking.store(true, Ordering::SeqCst);
    }

    /// Whether nobody was woken. From then on, whoever is wakes the task.
    fn is_done(&self, halves: &[&Half]) -> bool {
        let any_woken = || halves.iter().any(|half| half.woken.load(Ordering::SeqCst));
        if any_woken() {
            return false;
        }
        self.looking.store(false, Ordering::SeqCst);
        // Whoever was woken just before did not wake the task.
        if any_woken() {
            self.looking.store(true, Ordering::SeqCst);
            return false;
        }
        true
    }

    fn waker(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Half {
    fn take(&self) -> bool {
        self.woken.swap(false, Ordering::SeqCst)
    }
}

impl Wake for Half {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if !self.task.looking.load(Ordering::SeqCst)
            && let Some(waker) = &*self.task.waker()
        {
            waker.wake_by_ref();
        }
    }
}
