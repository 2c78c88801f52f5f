//! OUT-20: one parser reads what is saved and what is dialled.

use hookstead_egress::{Egress, MAX_URL_BYTES, Target, TargetError};

use crate::server::{Server, ok};
use crate::support::{post, settings};

fn parse(url: &str) -> Result<Target, TargetError> {
    Target::parse(url, false)
}

#[test]
fn out_20_other_spellings_of_private_addresses_are_refused() {
    for host in [
        "0177.0.0.1",
        "012.0.0.1",
        "017700000001",
        "0x7f000001",
        "0x7f.1",
        "0X7F.0.0.1",
        "2130706433",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "10.1",
        "0",
        "0.0",
        "0x0",
        "0xa9fea9fe",
        "2852039166",
        "169.254.43518",
        "0251.0376.0251.0376",
        // Digits and dots of other scripts.
        "１２７.０.０.１",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "１２７．１",
        "%31%32%37.0.0.1",
        "127.0.0.%31",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "LocalHost",
        "a.localhost",
        "a.b.LOCALHOST.",
        "ｌｏｃａｌｈｏｓｔ",
        "loc\u{ad}alhost",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::127.0.0.1]",
        "[::FFFF:7F00:1]",
        "[0::ffff:127.0.0.1]",
    ] {
        let url = format!("https://{host}/");
        assert_eq!(parse(&url), Err(TargetError::AddressNotAllowed), "{host}");
    }
}

#[test]
fn out_20_what_only_looks_like_an_address_is_no_url_or_a_public_address() {
    for host in [
        "127.0.0.1.1",
        "256.1.1.1",
        "0x100000000",
        "4294967296",
        "1.2.3.4x.5",
        "08.0.0.1",
        "[::1%25eth0]",
        "[fe80::1%eth0]",
        "[127.0.0.1]",
        "[::1",
        "127.0.0.1]",
        "a b",
        "a%00b",
    ] {
        let url = format!("https://{host}/");
        assert_eq!(parse(&url), Err(TargetError::InvalidUrl), "{host}");
    }
    // 1.2.3 is 1.2.0.3, which is public, and which is what would be dialled.
    assert!(parse("https://1.2.3/").is_ok());
}

#[tokio::test]
async fn out_20_every_spelling_is_dialled_as_it_was_checked() {
    let server = Server::answering(ok("fine")).await;
    let client = Egress::new(settings()).unwrap();
    for host in [
        "0177.0.0.1",
        "0x7f000001",
        "2130706433",
        "127.1",
        "127.0.0.1.",
        "１２７.０.０.１",
    ] {
        let url = format!("http://{host}:{}/", server.port());
        assert_eq!(client.send(post(url)).await.unwrap().status, 200, "{host}");
    }
}

#[test]
fn a_url_is_refused_for_one_reason_with_a_stable_code() {
    for (url, code) in [
        ("", "invalid_url"),
        ("example.com", "invalid_url"),
        ("/in", "invalid_url"),
        (" https://example.com/", "invalid_url"),
        ("https://example.com/\n", "invalid_url"),
        ("https://exa\tmple.com/", "invalid_url"),
        ("https://example.com\\@127.0.0.1/", "invalid_url"),
        ("https://example.com/a b", "invalid_url"),
        ("https://example.com:99999/", "invalid_url"),
        ("https://exam ple.com/", "invalid_url"),
        ("ftp://example.com/", "unknown_scheme"),
        ("file:///etc/passwd", "unknown_scheme"),
        ("gopher://127.0.0.1:70/", "unknown_scheme"),
        ("javascript:alert(1)", "unknown_scheme"),
        ("http://example.com/", "not_https"),
        ("HTTP://example.com/", "not_https"),
        ("https://user@example.com/", "has_userinfo"),
        ("https://user:word@example.com/", "has_userinfo"),
        ("https://:word@example.com/", "has_userinfo"),
        ("https://example.com/#part", "has_fragment"),
        ("https://example.com/#", "has_fragment"),
        ("https://", "invalid_host"),
        ("https://./", "invalid_host"),
        ("https://a..b/", "invalid_host"),
        ("https://example.com:0/", "invalid_port"),
        ("https://10.0.0.1/", "address_not_allowed"),
    ] {
        let refused = parse(url).map_err(TargetError::code);
        assert_eq!(refused, Err(code), "{url:?}");
    }
    let long = format!("https://example.com/{}", "a".repeat(MAX_URL_BYTES));
    assert_eq!(parse(&long), Err(TargetError::InvalidUrl));
}

#[test]
fn ordinary_urls_are_fine() {
    for url in [
        "https://example.com",
        "https://example.com./in",
        "https://EXAMPLE.com:8443/in?key=a%20b&x=@#".trim_end_matches('#'),
        "https://bücher.example/in",
        "https://a_b.example.com/",
        "https://internal/",
        "HTTPS://example.com/",
    ] {
        assert!(parse(url).is_ok(), "{url}");
    }
    assert!(Target::parse("http://example.com/", true).is_ok());
}

#[test]
fn a_target_shows_nothing_of_its_url() {
    let target = parse("https://CANARY.example.com/CANARY?CANARY").unwrap();
    assert!(!format!("{target:?}").to_lowercase().contains("canary"));
    for error in TargetError::ALL {
        assert!(!error.to_string().contains("://"), "{error}");
    }
}
