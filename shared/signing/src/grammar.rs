//! Taking signature values apart.

use crate::reason::Reason;
use crate::scheme::{Format, Labels, SignatureRule};

/// Signatures that share one timestamp.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Group {
    pub(crate) ts: Option<String>,
    pub(crate) signatures: Vec<String>,
}

/// Reads every value found in one place. `ts_key` names the timestamp among pairs.
pub(crate) fn read(
    rule: &SignatureRule,
    ts_key: Option<&str>,
    values: &[&str],
) -> Result<Vec<Group>, Reason> {
    if values.iter().all(|value| value.trim().is_empty()) {
        return Err(Reason::MissingSignature);
    }
    let groups = match rule.format {
        Format::Single => vec![single(rule, values)?],
        Format::List => vec![list(rule, values)?],
        Format::Versioned => vec![versioned(rule, values)?],
        Format::Pairs => vec![pairs(rule, ts_key, values)?],
        Format::Positional => vec![positional(rule, values)?],
        Format::Groups => {
            let mut groups = Vec::new();
            for value in values.iter().flat_map(|value| value.split_whitespace()) {
                groups.push(pairs(rule, ts_key, &[value])?);
                if groups.len() > rule.max {
                    return Err(Reason::TooManySignatures);
                }
            }
            groups
        }
    };
    if groups.iter().all(|group| group.signatures.is_empty()) {
        return Err(Reason::MalformedSignature);
    }
    Ok(groups)
}

fn separator<'r>(rule: &'r SignatureRule, default: &'r str) -> &'r str {
    rule.separator.as_deref().unwrap_or(default)
}

fn trimmed<'v>(rule: &SignatureRule, value: &'v str) -> &'v str {
    if rule.trim { value.trim() } else { value }
}

/// Counts an entry and refuses when there are more than a sender needs.
fn count(rule: &SignatureRule, entries: &mut usize) -> Result<(), Reason> {
    *entries += 1;
    if *entries > rule.max {
        return Err(Reason::TooManySignatures);
    }
    Ok(())
}

fn single(rule: &SignatureRule, values: &[&str]) -> Result<Group, Reason> {
    // A header sent twice has no one meaning: libraries see the first, the last or both joined.
    let [value] = values else {
        return Err(Reason::MalformedSignature);
    };
    let signature = trimmed(rule, value)
        .strip_prefix(rule.prefix.as_str())
        .filter(|signature| !signature.is_empty())
        .ok_or(Reason::MalformedSignature)?;
    Ok(Group {
        ts: None,
        signatures: vec![signature.to_owned()],
    })
}

fn list(rule: &SignatureRule, values: &[&str]) -> Result<Group, Reason> {
    let mut group = Group::default();
    let mut entries = 0;
    for value in values {
        for entry in value.split(separator(rule, ",")) {
            count(rule, &mut entries)?;
            if let Some(signature) = trimmed(rule, entry).strip_prefix(rule.prefix.as_str())
                && !signature.is_empty()
            {
                group.signatures.push(signature.to_owned());
            }
        }
    }
    Ok(group)
}

/// `v1,AAA v1,BBB`, with blanks between and no other white space. Front ends join repeated headers
/// with a comma, which gives `v1,AAA,v1,BBB`: base64 has no comma, so the entries can still be told
/// apart.
fn versioned(rule: &SignatureRule, values: &[&str]) -> Result<Group, Reason> {
    let version = rule.key.as_deref().unwrap_or("v1");
    let mut group = Group::default();
    let mut entries = 0;
    for entry in values
        .iter()
        .flat_map(|value| trimmed(rule, value).split(' '))
        .filter(|entry| !entry.is_empty())
    {
        let tokens: Vec<_> = entry
            .split(',')
            .take(2 * rule.max + 2)
            .filter(|token| !token.is_empty())
            .collect();
        if let [bare] = tokens[..] {
            count(rule, &mut entries)?;
            if rule.labels == Labels::Optional {
                group.signatures.push(bare.to_owned());
            }
        }
        for pair in tokens.chunks_exact(2) {
            count(rule, &mut entries)?;
            if pair[0] == version || rule.labels == Labels::Ignored {
                group.signatures.push(pair[1].to_owned());
            }
        }
    }
    Ok(group)
}

fn pairs(rule: &SignatureRule, ts_key: Option<&str>, values: &[&str]) -> Result<Group, Reason> {
    let key = rule.key.as_deref().unwrap_or("v1");
    let mut group = Group::default();
    let mut entries = 0;
    for value in values {
        for entry in value.split(separator(rule, ",")) {
            count(rule, &mut entries)?;
            let Some((name, value)) = entry.split_once('=') else {
                continue;
            };
            let (name, value) = (trimmed(rule, name), trimmed(rule, value));
            // Libraries that read into a map keep the last of two times.
            if name == key && (!rule.first_only || group.signatures.is_empty()) {
                group.signatures.push(value.to_owned());
            }
            if Some(name) == ts_key && (!rule.first_only || group.ts.is_none()) {
                group.ts = Some(value.to_owned());
            }
        }
    }
    if rule.exact {
        exact(rule, ts_key, values, &group)?;
    }
    Ok(group)
}

/// Refuses a header that is not letter for letter what we would write.
fn exact(
    rule: &SignatureRule,
    ts_key: Option<&str>,
    values: &[&str],
    group: &Group,
) -> Result<(), Reason> {
    let signature = group.signatures.first().map_or("", String::as_str);
    let key = rule.key.as_deref().unwrap_or("v1");
    let written = match (ts_key, group.ts.as_deref()) {
        (Some(ts_key), Some(ts)) => {
            format!("{ts_key}={ts}{}{key}={signature}", separator(rule, ","))
        }
        _ => format!("{key}={signature}"),
    };
    if values != [written] {
        return Err(Reason::MalformedSignature);
    }
    Ok(())
}

fn positional(rule: &SignatureRule, values: &[&str]) -> Result<Group, Reason> {
    let mut group = Group::default();
    let mut entries = 0;
    // Front ends join repeated headers, which puts a further time among the signatures.
    let mut parts = values
        .iter()
        .flat_map(|value| value.split(separator(rule, ",")));
    group.ts = parts.next().map(|ts| trimmed(rule, ts).to_owned());
    for part in parts {
        count(rule, &mut entries)?;
        if !part.is_empty() {
            group.signatures.push(trimmed(rule, part).to_owned());
        }
    }
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use proptest::prelude::*;

    fn parts(kind: &str, ts_key: Option<&str>, values: &[&str]) -> Result<Vec<Group>, Reason> {
        read(
            builtin(kind).unwrap().signature.as_ref().unwrap(),
            ts_key,
            values,
        )
    }

    fn signatures(kind: &str, ts_key: Option<&str>, values: &[&str]) -> Vec<String> {
        let groups = parts(kind, ts_key, values).unwrap();
        groups
            .into_iter()
            .flat_map(|group| group.signatures)
            .collect()
    }

    #[test]
    fn rec_06_long_lists_are_refused_unread() {
        let many = vec!["v1,AAAA"; 1_000].join(" ");
        assert_eq!(
            parts("standard-webhooks", None, &[&many]),
            Err(Reason::TooManySignatures)
        );
        let many = vec!["v1=00"; 1_000].join(",");
        assert_eq!(
            parts("stripe", Some("t"), &[&many]),
            Err(Reason::TooManySignatures)
        );
        let joined = vec!["v1,AAAA"; 1_000].join(",");
        assert_eq!(
            parts("standard-webhooks", None, &[&joined]),
            Err(Reason::TooManySignatures)
        );
    }

    #[test]
    fn joined_and_repeated_headers_are_read_entry_by_entry() {
        assert_eq!(
            signatures("svix", None, &["v1,AA,v1,BB v2,CC"]),
            ["AA", "BB"]
        );
        assert_eq!(signatures("svix", None, &["v1,AA", "v1,BB"]), ["AA", "BB"]);
    }

    #[test]
    fn a_single_signature_sent_twice_is_refused_even_if_it_is_the_same() {
        for second in ["sha256=aa", "sha256=bb"] {
            assert_eq!(
                parts("github", None, &["sha256=aa", second]),
                Err(Reason::MalformedSignature)
            );
        }
    }

    #[test]
    fn blanks_alone_are_no_signature() {
        assert_eq!(
            parts("github", None, &["", " "]),
            Err(Reason::MissingSignature)
        );
    }

    proptest! {
        #[test]
        fn any_header_is_survived(values in prop::collection::vec(".{0,80}", 1..4)) {
            let values: Vec<_> = values.iter().map(String::as_str).collect();
            for kind in ["stripe", "svix", "github", "recurly", "persona", "orb", "sanity"] {
                if let Err(reason) = parts(kind, Some("t"), &values) {
                    prop_assert!(!reason.code().is_empty());
                }
            }
        }
    }
}
