use hookstead_signing::vectors::run_vector;

const VECTORS: &str = include_str!("../vectors/vectors.jsonl");

/// Lines of the file; a shorter file means that vectors were lost.
const LINES: usize = 611;

#[test]
fn every_published_vector_passes() {
    let mut failed = Vec::new();
    let mut lines = 0;
    for line in VECTORS.lines().filter(|line| !line.trim().is_empty()) {
        lines += 1;
        let outcome = run_vector(line);
        if let Some(problem) = outcome.problem {
            failed.push(format!("{}/{}: {problem}", outcome.provider, outcome.name));
        }
    }
    assert!(lines >= LINES, "only {lines} vectors were found");
    assert!(
        failed.is_empty(),
        "{} of {lines} vectors failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}
