//! The style of the report: with or without colors, with bars in ASCII or Unicode.

/// Colors and bars.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Style {
    /// Whether to print names in blue, signs in cyan, comments in white.
    pub(super) has_colors: bool,
    /// Whether bars consist of Unicode block elements.
    pub(super) has_unicode: bool,
}

impl Style {
    fn code(self, code: &'static str) -> &'static str {
        if self.has_colors { code } else { "" }
    }

    pub(super) fn blue(self) -> &'static str {
        self.code("\x1b[34m")
    }

    pub(super) fn cyan(self) -> &'static str {
        self.code("\x1b[36m")
    }

    pub(super) fn white(self) -> &'static str {
        self.code("\x1b[37m")
    }

    pub(super) fn reset(self) -> &'static str {
        self.code("\x1b[0m")
    }

    /// The text in parentheses; empty for `None`.
    pub(super) fn quiet(self, text: Option<String>) -> String {
        text.map_or_else(String::new, |text| {
            format!("{}({text}){}", self.white(), self.reset())
        })
    }

    /// A bar of this width in characters; the last character may stand for a fraction.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a width of a screen"
    )]
    pub(super) fn bar(self, width: f64) -> String {
        let rest = width - width.floor();
        let (full, parts): (&str, &[(f64, &str)]) = if self.has_unicode {
            ("\u{2589}", &FINE)
        } else {
            ("O", &COARSE)
        };
        let part = parts.iter().find(|(least, _)| rest >= *least);
        let last = part.map_or("", |(_, text)| *text);
        format!(
            "{}{}{last}{}",
            self.white(),
            full.repeat(width as usize),
            self.reset()
        )
    }
}

/// Pairs of a lower bound and the character for fractions from this bound on. The first pair that fits is used.
const COARSE: [(f64, &str); 2] = [(0.75, "o"), (0.3, ".")];
/// Compat: some eighths are left out, since fonts draw them badly.
const FINE: [(f64, &str); 6] = [
    (0.875, "\u{2589}"),
    (0.75, "\u{258a}"),
    (0.625, "\u{258b}"),
    (0.375, "\u{258d}"),
    (0.25, "\u{258e}"),
    (0.125, "\u{258f}"),
];

#[cfg(test)]
mod tests {
    use super::Style;

    #[test]
    fn bars_have_parts_of_characters() {
        let plain = Style::default();
        assert_eq!(plain.bar(2.76), "OOo");
        assert_eq!(plain.bar(0.1), "");
        let fine = Style {
            has_unicode: true,
            has_colors: true,
        };
        assert_eq!(fine.bar(1.26), "\x1b[37m\u{2589}\u{258e}\x1b[0m");
    }
}
