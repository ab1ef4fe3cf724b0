//! Sandboxes: the manager, the native driver, change sets and undo.
