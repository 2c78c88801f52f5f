//! Development secrets: made at random once, kept beside the manifest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookstead_signing::{HandshakeRule, Scheme, SecretEncoding, Step, import_secret};

use crate::error::{Doing as _, Error};
use crate::manifest::{Manifest, SecretRef};
use crate::project::Project;

/// Random bytes of a secret: as many as the hash of the commonest schemes has.
const SECRET_BYTES: usize = 32;

/// Makes the development secrets that are not there yet. Sources for which none
/// can be made are all named at once.
pub(crate) fn prepare(project: &Project, manifest: &Manifest) -> Result<(), Error> {
    let wanted = manifest
        .sources
        .iter()
        .filter(|source| source.secret == Some(SecretRef::Dev));
    let mut made = Vec::new();
    let mut impossible = Vec::new();
    for source in wanted {
        let path = project.secret_path(source.name.as_str());
        let Some(scheme) = source.signing_scheme().filter(|_| !path.exists()) else {
            continue;
        };
        match make(&source.kind, scheme)? {
            Some(text) => made.push((path, text)),
            None => impossible.push(format!("\"{}\" ({})", source.name.as_str(), source.kind)),
        }
    }
    if !impossible.is_empty() {
        let message = format!(
            "only the provider can sign for these sources, so no development secret can be made: {}. Give them what verifies with file: or env:",
            impossible.join(", ")
        );
        return Err(Error::usage("no_development_secret", message));
    }
    for (path, text) in made {
        project.write_private(&path, format!("{text}\n").as_bytes())?;
    }
    Ok(())
}

/// A random secret in the form that the scheme needs; `None` where only the
/// provider holds what signs.
fn make(kind: &str, scheme: &Scheme) -> Result<Option<String>, Error> {
    let mut random = [0; SECRET_BYTES];
    getrandom::fill(&mut random)
        .map_err(std::io::Error::other)
        .doing("the system gave no random bytes")?;
    let Some(text) = shaped(kind, scheme, &random) else {
        return Ok(None);
    };
    Ok(import_secret(scheme, &text).is_ok().then_some(text))
}

fn shaped(kind: &str, scheme: &Scheme, random: &[u8; SECRET_BYTES]) -> Option<String> {
    let rule = &scheme.secret;
    let hex = hex::encode(random);
    if scheme.basic.is_some() {
        return Some(format!("hookstead:{hex}"));
    }
    let prefix = rule.prefix.as_deref().unwrap_or_default();
    let key = match rule.encoding {
        SecretEncoding::Utf8 => format!("{prefix}{hex}"),
        SecretEncoding::Hex => format!("{prefix}{hex}"),
        SecretEncoding::Base64 => format!("{prefix}{}", STANDARD.encode(random)),
        SecretEncoding::PublicKey | SecretEncoding::Jwk => return None,
    };
    let key = match rule.length {
        Some(length) => key.chars().cycle().take(length).collect(),
        // The provider's own secrets are recognised by this word, which belongs to the key.
        None if kind == "stripe" => format!("whsec_{key}"),
        None => key,
    };
    let members = members(scheme);
    if members.is_empty() {
        return Some(key);
    }
    let object: serde_json::Map<_, _> = members
        .into_iter()
        .map(|name| (name.to_owned(), key.clone().into()))
        .collect();
    Some(serde_json::Value::Object(object).to_string())
}

/// The members of a secret that is a JSON object; none where it is plain text.
fn members(scheme: &Scheme) -> Vec<&str> {
    let keys = scheme.signature.iter().flat_map(|rule| &rule.keys);
    let issuer = scheme
        .jwt
        .iter()
        .filter_map(|rule| rule.issuer_from_secret.as_ref());
    let mut members: Vec<&str> = keys
        .chain(issuer)
        .chain(&scheme.secret.member)
        .map(String::as_str)
        .collect();
    // Named by their steps and not by a field of the scheme.
    if scheme
        .signature
        .as_ref()
        .is_some_and(|rule| rule.step == Some(Step::Braintree))
    {
        members.push("public_key");
    }
    let asks_for_token = |rule: &HandshakeRule| {
        matches!(
            rule,
            HandshakeRule::QueryEcho {
                verify_token: Some(_),
                ..
            }
        )
    };
    if !members.is_empty() && scheme.handshake.iter().any(asks_for_token) {
        members.push("verify_token");
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookstead_signing::{builtin, kinds};

    #[test]
    fn every_kind_with_a_shared_key_gets_a_secret_it_takes() {
        for kind in kinds() {
            let scheme = builtin(kind).unwrap();
            let shared = !matches!(
                scheme.secret.encoding,
                SecretEncoding::PublicKey | SecretEncoding::Jwk
            );
            assert_eq!(make(kind, scheme).unwrap().is_some(), shared, "{kind}");
        }
    }

    #[test]
    fn secrets_look_like_the_provider_s_own_and_never_repeat() {
        let make = |kind| make(kind, builtin(kind).unwrap()).unwrap().unwrap();
        assert!(make("stripe").starts_with("whsec_"));
        assert!(make("standard-webhooks").starts_with("whsec_"));
        assert_ne!(make("github"), make("github"));
    }
}
