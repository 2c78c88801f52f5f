//! Fields that hold one value or a list of them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

pub(crate) fn serialize<S, T>(values: &[T], to: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
    T: Serialize,
{
    match values {
        [one] => one.serialize(to),
        many => many.serialize(to),
    }
}

pub(crate) fn deserialize<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<String>,
    T::Error: std::fmt::Display,
{
    let texts = match OneOrMany::deserialize(from)? {
        OneOrMany::One(text) => vec![text],
        OneOrMany::Many(texts) => texts,
    };
    texts
        .into_iter()
        .map(|text| T::try_from(text).map_err(serde::de::Error::custom))
        .collect()
}
