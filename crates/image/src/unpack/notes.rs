//! What an archive has that its layer has not.

/// How many are told one by one.
const MOST: usize = 20;

/// Notes for the user; an archive cannot make them without end.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    told: Vec<String>,
    untold: u64,
}

impl Notes {
    pub(crate) fn add(&mut self, note: impl FnOnce() -> String) {
        if self.told.len() < MOST {
            self.told.push(note());
        } else {
            self.untold += 1;
        }
    }

    pub(crate) fn finish(mut self) -> Vec<String> {
        if self.untold > 0 {
            self.told.push(format!("and {} more", self.untold));
        }
        self.told
    }
}
