//! The cache and the local provider, through their public faces.
#![allow(clippy::unwrap_used)]

mod cache;
mod local;
