//! Numbers as a person reads them: three digits, a prefix, a unit.

/// A value with its unit, such as `1.83 Mop/s`, `4.31 ms`, `1.07x` or `97.4 %`.
///
/// Units are those of [`schema`](crate::schema). Values of `ns` become a suitable unit of time;
/// `op/s` and unknown units get a decimal prefix, `bytes` a binary one.
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "ns" => duration(value),
        "ratio" => ratio(value),
        "%" => format!("{} %", significant(value, 3)),
        "bytes" => prefixed(value, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"]),
        "op/s" => prefixed(value, 1000.0, &["op/s", "kop/s", "Mop/s", "Gop/s"]),
        "entry/s" => prefixed(value, 1000.0, &["/s", "k/s", "M/s", "G/s"]),
        _ => format!("{} {unit}", significant(value, 3)),
    }
}

/// How many, such as `1.83 M`.
pub fn count(value: f64) -> String {
    prefixed(value, 1000.0, &["", "k", "M", "G", "T"]).trim_end().to_owned()
}

/// Nanoseconds in a suitable unit of time. Units are two columns wide, so that right-aligned
/// numbers line up.
pub fn duration(ns: f64) -> String {
    prefixed(ns, 1000.0, &["ns", "us", "ms", "s "])
}

/// A ratio: two decimals, more for values far below one.
pub fn ratio(value: f64) -> String {
    match value.abs() {
        below if below < 0.095 => format!("{}x", significant(value, 2)),
        below if below < 99.5 => format!("{value:.2}x"),
        _ => format!("{}x", significant(value, 3)),
    }
}

/// An interval of ratios, `[0.98, 1.03]`; empty if there is none.
pub fn interval(low: Option<f64>, high: Option<f64>) -> String {
    let end = |value: f64| ratio(value).trim_end_matches('x').to_string();
    match (low, high) {
        (Some(low), Some(high)) => format!("[{}, {}]", end(low), end(high)),
        _ => String::new(),
    }
}

/// A number to `digits` significant digits, without an exponent. Digits before the point are never
/// rounded away.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let decimals = |value: f64| {
        let whole = value.abs().log10().floor() as i64 + 1;
        (digits as i64 - whole).max(0) as usize
    };
    // Rounding can add a digit: 9.996 to three digits is 10.0.
    let rounded: f64 = format!("{value:.*}", decimals(value)).parse().unwrap_or(value);
    format!("{value:.*}", if rounded == 0.0 { decimals(value) } else { decimals(rounded) })
}

fn prefixed(value: f64, step: f64, units: &[&str]) -> String {
    let mut scaled = value;
    let mut unit = 0;
    // 999.5 and more would be printed as 1000 of the smaller unit.
    while scaled.abs() >= step - 0.5 && unit + 1 < units.len() {
        scaled /= step;
        unit += 1;
    }
    format!("{} {}", significant(scaled, 3), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_no_exponent() {
        let cases = [
            (0.0, "0"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (12.34, "12.3"),
            (999.6, "1000"),
            (123_456.0, "123456"),
            (0.001_234, "0.00123"),
            (-4.567, "-4.57"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value, 3), text);
        }
    }

    #[test]
    fn units_suit_the_value() {
        assert_eq!(quantity(1_834_211.0, "op/s"), "1.83 Mop/s");
        assert_eq!(quantity(999.7, "op/s"), "1.00 kop/s");
        assert_eq!([0.0, 12.0, 1_834_211.0].map(count), ["0", "12.0", "1.83 M"]);
        assert_eq!(duration(50.0), "50.0 ns");
        assert_eq!(duration(4_310_000.0), "4.31 ms");
        assert_eq!(duration(12e9), "12.0 s ");
        assert_eq!(quantity(1536.0, "bytes"), "1.50 KiB");
        assert_eq!(quantity(32.0, "instructions"), "32.0 instructions");
    }

    #[test]
    fn ratios_keep_two_decimals() {
        assert_eq!(ratio(1.066), "1.07x");
        assert_eq!(ratio(0.97), "0.97x");
        assert_eq!(ratio(0.0123), "0.012x");
        assert_eq!(ratio(1234.0), "1234x");
        assert_eq!(interval(Some(0.981), Some(1.034)), "[0.98, 1.03]");
        assert_eq!(interval(None, None), "");
    }
}
