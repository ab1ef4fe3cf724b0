//! Reaching, changing and leaving behind files.

mod covered;
mod left;
mod protected;
mod unwritable;

use crate::attempt::Attempt;

pub(crate) fn attempts() -> Vec<Attempt> {
    [covered::ATTEMPTS, unwritable::ATTEMPTS, protected::ATTEMPTS, left::ATTEMPTS].concat()
}
