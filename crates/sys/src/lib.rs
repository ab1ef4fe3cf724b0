//! Kernel interfaces that rustix and landlock lack; the only crate with unsafe code.
