//! Random values.

use crate::error::{Doing as _, Error};

/// Random bytes from the system.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut random = [0; N];
    getrandom::fill(&mut random)
        .map_err(std::io::Error::other)
        .doing("the system gave no random bytes")?;
    Ok(random)
}

/// An id that nobody else makes: the prefix and 96 random bits.
pub(crate) fn id(prefix: &str) -> Result<String, Error> {
    Ok(format!("{prefix}{}", hex::encode(bytes::<12>()?)))
}
