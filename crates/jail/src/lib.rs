//! Turns a resolved policy into a running, confined process tree.
