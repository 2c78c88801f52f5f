//! The text of a key file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::keys::{KEY_BYTES, KeyError, PlainKey, cipher};

/// What the file says to who opens it.
const HEADER: &str = "# Keys of Hookstead on this machine. Secrets of subscriptions open with these alone.\n\
                      # The last one is in force. Do not remove a line whose key is still in use.\n";

/// Random bytes of a name. Names are random so that a key which is gone is not mistaken
/// for a new one; four bytes tell the few of one machine apart.
const NAME_BYTES: usize = 4;

/// A key with its name.
pub(super) struct Key {
    pub(super) name: String,
    pub(super) key: PlainKey,
}

/// All keys, in the order of the file.
#[derive(Default)]
pub(super) struct Keys(pub(super) Vec<Key>);

impl Key {
    pub(super) fn random() -> Result<Self, KeyError> {
        let mut name = [0; NAME_BYTES];
        cipher::fill_random(&mut name)?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        cipher::fill_random(&mut *key)?;
        Ok(Self {
            name: format!("{:08x}", u32::from_be_bytes(name)),
            key: PlainKey::from_slice(&*key).ok_or_else(|| KeyError::refused("key_length"))?,
        })
    }
}

impl Keys {
    /// Reads a file; `None` where any line is not a key.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys = lines.map(|line| {
            let (name, key) = line.split_once(' ')?;
            let key = Zeroizing::new(STANDARD.decode(key.trim()).ok()?);
            Some(Key {
                name: name.to_owned(),
                key: PlainKey::from_slice(&key)?,
            })
        });
        keys.collect::<Option<Vec<_>>>().map(Self)
    }

    pub(super) fn text(&self) -> Zeroizing<String> {
        // Room for all lines, so that no copy is left behind by growing.
        let room = HEADER.len() + self.0.len() * 128;
        let mut text = Zeroizing::new(String::with_capacity(room));
        text.push_str(HEADER);
        for Key { name, key } in &self.0 {
            text.push_str(name);
            text.push(' ');
            STANDARD.encode_string(key.bytes(), &mut text);
            text.push('\n');
        }
        text
    }
}
