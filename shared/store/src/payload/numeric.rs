//! How large a number PostgreSQL's numeric holds.

/// Most digits before the decimal point of PostgreSQL's numeric.
const MAX_WHOLE_DIGITS: i64 = 131_072;

/// Most digits after it.
const MAX_FRACTION_DIGITS: i64 = 16_383;

/// Exponents beyond this are out of range whatever the digits; it keeps the sums
/// below far from overflow. A body with enough digits to matter is far too large.
const MAX_EXPONENT: i64 = 1_000_000;

/// Whether a number has few enough digits on both sides of the decimal point, once
/// the exponent has moved it.
pub(super) fn fits_numeric(whole: &[u8], fraction: &[u8], exponent: i64) -> bool {
    if exponent.abs() > MAX_EXPONENT {
        return false;
    }
    let len = |digits: &[u8]| i64::try_from(digits.len()).unwrap_or(i64::MAX / 4);
    if len(fraction) - exponent > MAX_FRACTION_DIGITS {
        return false;
    }
    // Digits before the point, not counting zeros in front.
    let leading_zeros = whole
        .iter()
        .chain(fraction)
        .take_while(|digit| **digit == b'0')
        .count();
    let is_zero = leading_zeros == whole.len() + fraction.len();
    let leading_zeros = i64::try_from(leading_zeros).unwrap_or(i64::MAX / 4);
    is_zero || len(whole) - leading_zeros + exponent <= MAX_WHOLE_DIGITS
}
