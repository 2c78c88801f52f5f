//! The built-in kinds are complete.

use std::collections::BTreeSet;

use hookstead_signing::{builtin, kinds};

/// Every scheme of the fact base and every alias of one; the unsigned kind is left out on purpose.
const KINDS: &str = include_str!("../vectors/kinds.txt");

#[test]
fn every_known_provider_has_a_kind() {
    let known: BTreeSet<_> = KINDS.lines().collect();
    let built: BTreeSet<_> = kinds().collect();
    assert_eq!(known, built);
    for kind in built {
        let scheme = builtin(kind).unwrap();
        scheme
            .validate()
            .unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert!(!scheme.name.is_empty());
    }
    assert!(builtin("mollie-classic").is_none());
}

#[test]
fn no_two_scheme_files_share_a_name() {
    let mut names = BTreeSet::new();
    for kind in kinds() {
        assert!(names.insert(&builtin(kind).unwrap().name), "{kind}");
    }
}
