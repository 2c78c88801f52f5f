//! Finds or fetches PostgreSQL and runs a server of it, for development, tests and benches.
//!
//! Everything here blocks: call it from `main` before the runtime starts, or from a
//! blocking task. The server listens on 127.0.0.1 alone and trusts whoever reaches it
//! there, so it is for one machine and for data nobody would miss.
//!
//! ```no_run
//! use hookstead_localpg::{Binaries, Options, Server, project_data_dir};
//!
//! let data_dir = project_data_dir(std::path::Path::new("."))?;
//! let binaries = Binaries::obtain_for(&data_dir)?;
//! let server = Server::start(Options::new(data_dir, binaries))?;
//! println!("{}", server.url("postgres"));
//! server.stop()?;
//! # Ok::<(), hookstead_localpg::Error>(())
//! ```

mod account;
mod binaries;
mod cluster;
mod error;
mod fetch;
mod log;
mod options;
mod places;
mod search;
mod server;
mod supervisor;

pub use account::Account;
pub use binaries::{Binaries, FETCHED_MAJOR, OLDEST_MAJOR, Origin};
pub use cluster::data_dir_major;
pub use error::Error;
pub use options::{Durability, Options};
pub use places::{cache_dir, project_data_dir, state_dir};
pub use search::Search;
pub use server::{SUPERUSER, Server};
