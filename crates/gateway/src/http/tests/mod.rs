//! Clients and servers that are made of bytes, on both sides of a bridge.

mod answers;
mod cut;
mod heads;
mod large;
mod two;
mod world;
