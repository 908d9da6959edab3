//! Lines of text with a checksum behind them: the form of the engine's own small files.
//!
//! ```text
//! file := line* "crc32 " hex LF
//! ```
//! The checksum is that of the lines.

/// Adds the checksum.
pub(crate) fn with_crc(lines: &str) -> String {
    let crc = ilion_codec::crc32(lines.as_bytes());
    format!("{lines}crc32 {crc:08x}\n")
}

/// The lines; `None` if the text is damaged.
pub(crate) fn without_crc(text: &str) -> Option<&str> {
    let (lines, crc) = text.split_at_checked(text.rfind("crc32 ")?)?;
    let crc = u32::from_str_radix(crc.strip_prefix("crc32 ")?.strip_suffix('\n')?, 16).ok()?;
    (ilion_codec::crc32(lines.as_bytes()) == crc).then_some(lines)
}

#[cfg(test)]
pub(crate) mod tests {
    /// Asserts that `parse` notices a changed byte and a missing end, wherever they are.
    #[track_caller]
    pub(crate) fn assert_damage_is_noticed(text: &str, parse: impl Fn(&str) -> bool) {
        assert!(parse(text));
        for at in 0..text.len() {
            let mut damaged = text.as_bytes().to_vec();
            damaged[at] ^= 1;
            assert!(!parse(&String::from_utf8_lossy(&damaged)), "byte {at}");
            assert!(!parse(&text[..at]), "cut at {at}");
        }
    }
}
