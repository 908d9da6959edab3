//! Splits text into the tokens that an index compares, and normalizes them: case, composed characters, accents. Pure.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// What happens to the case of letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Case {
    /// Unchanged.
    #[default]
    Kept,
    Lower,
    Upper,
}

/// Normalizations of a text, applied in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Filters {
    pub(super) case: Case,
    /// Convert to Unicode's composed form (NFC).
    pub(super) is_normalized: bool,
    /// Replace letters with accents, ligatures and the like by ASCII.
    pub(super) is_ascii: bool,
}

/// How a text is split into tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Analyzer {
    /// Not analyzed: the term is the value.
    None,
    /// One token: the whole text.
    Whole(Filters),
    /// Split at a character.
    Delimited(char, Filters),
    /// Split at white space.
    Spaced(Filters),
    /// The words of the text: sequences of letters and digits.
    Words(Filters),
    /// The words of the text: sequences of letters.
    Letters(Filters),
}

impl Analyzer {
    pub(super) fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// True if a text may have several tokens.
    pub(super) fn splits(&self) -> bool {
        matches!(
            self,
            Self::Delimited(..) | Self::Spaced(_) | Self::Words(_) | Self::Letters(_)
        )
    }

    /// Passes the tokens of a value to `take`, in order. A value that is not UTF-8 is one token, unchanged.
    pub(super) fn each_token<E>(
        &self,
        value: &[u8],
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Ok(text) = std::str::from_utf8(value) else {
            return take(value);
        };
        let mut pass = |part: &str, filters: &Filters| take(filters.pass(part).as_bytes());
        match self {
            Self::None => take(value),
            Self::Whole(filters) => pass(text, filters),
            Self::Delimited(delimiter, filters) => text
                .split(*delimiter)
                .filter(|part| !part.is_empty())
                .try_for_each(|part| pass(part, filters)),
            Self::Spaced(filters) => text.split_whitespace().try_for_each(|part| pass(part, filters)),
            Self::Letters(filters) => text
                .split(|c: char| !c.is_alphabetic())
                .filter(|part| !part.is_empty())
                .try_for_each(|part| pass(part, filters)),
            Self::Words(filters) => text
                .split(|c: char| !c.is_alphanumeric())
                .filter(|part| !part.is_empty())
                .try_for_each(|part| pass(part, filters)),
        }
    }

    pub(super) fn tokens(&self, value: &[u8]) -> Vec<Vec<u8>> {
        let mut tokens = Vec::new();
        let all = self.each_token(value, &mut |token| {
            tokens.push(token.to_vec());
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(()) = all;
        tokens
    }

    /// The longest token, which is probably the rarest.
    pub(super) fn longest_token(&self, value: &[u8]) -> Option<Vec<u8>> {
        self.tokens(value).into_iter().max_by_key(Vec::len)
    }

    /// True if `value` has every token of `wanted`.
    pub(super) fn is_same(&self, wanted: &[u8], value: &[u8]) -> bool {
        let (wanted, tokens) = (self.tokens(wanted), self.tokens(value));
        !wanted.is_empty() && wanted.iter().all(|token| tokens.contains(token))
    }
}

impl Filters {
    fn pass<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = match self.case {
            Case::Kept => Cow::Borrowed(text),
            Case::Lower => Cow::Owned(text.to_lowercase()),
            Case::Upper => Cow::Owned(text.to_uppercase()),
        };
        if self.is_normalized && !is_nfc(&text) {
            text = Cow::Owned(text.nfc().collect());
        }
        if self.is_ascii && !text.is_ascii() {
            text = Cow::Owned(fold(&text));
        }
        text
    }
}

/// Compat: Lucene's `ASCIIFoldingFilter`, for letters of Latin scripts; that filter also knows some rarer letters.
fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match folded(c) {
            Some(ascii) => out.push_str(ascii),
            None if c.is_ascii() || is_combining_mark(c) => out.push(c),
            None => {
                let parts = || std::iter::once(c).nfkd().filter(|part| !is_combining_mark(*part));
                if parts().all(|part| part.is_ascii()) {
                    out.extend(parts());
                } else {
                    out.push(c);
                }
            }
        }
    }
    out
}

/// Letters and signs that Unicode does not decompose.
fn folded(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{C6}' => "AE",
        '\u{E6}' => "ae",
        '\u{152}' => "OE",
        '\u{153}' => "oe",
        '\u{DF}' => "ss",
        '\u{1E9E}' => "SS",
        '\u{D8}' => "O",
        '\u{F8}' => "o",
        '\u{110}' | '\u{D0}' | '\u{189}' => "D",
        '\u{111}' | '\u{F0}' | '\u{256}' => "d",
        '\u{141}' => "L",
        '\u{142}' => "l",
        '\u{DE}' => "TH",
        '\u{FE}' => "th",
        '\u{126}' => "H",
        '\u{127}' => "h",
        '\u{131}' => "i",
        '\u{138}' => "q",
        '\u{14A}' => "N",
        '\u{14B}' => "n",
        '\u{166}' => "T",
        '\u{167}' => "t",
        '\u{180}' => "b",
        '\u{19A}' => "l",
        '\u{2018}' | '\u{2019}' | '\u{201A}' | '\u{201B}' | '\u{2032}' => "'",
        '\u{201C}' | '\u{201D}' | '\u{201E}' | '\u{2033}' | '\u{AB}' | '\u{BB}' => "\"",
        '\u{2010}'..='\u{2014}' | '\u{207B}' | '\u{208B}' => "-",
        '\u{2039}' => "<",
        '\u{203A}' => ">",
        '\u{2044}' => "/",
        '\u{204E}' => "*",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(case: Case, is_normalized: bool, is_ascii: bool) -> Analyzer {
        Analyzer::Whole(Filters {
            case,
            is_normalized,
            is_ascii,
        })
    }

    fn text(analyzer: &Analyzer, value: &str) -> String {
        let tokens = analyzer.tokens(value.as_bytes());
        let tokens: Vec<_> = tokens
            .iter()
            .map(|token| String::from_utf8_lossy(token).into_owned())
            .collect();
        tokens.join("|")
    }

    #[test]
    fn filters_do_what_their_options_say() {
        assert_eq!(
            text(&whole(Case::Lower, false, false), "CAF\u{C9} Bar"),
            "caf\u{E9} bar"
        );
        assert_eq!(text(&whole(Case::Upper, false, false), "stra\u{DF}e"), "STRASSE");
        assert_eq!(text(&whole(Case::Kept, true, false), "e\u{301}"), "\u{E9}");
        let ascii = whole(Case::Kept, false, true);
        assert_eq!(
            text(&ascii, "\u{C9}l\u{E8}ve \u{D8}re stra\u{DF}e \u{FF21}"),
            "Eleve Ore strasse A"
        );
        // Letters of other scripts stay.
        assert_eq!(text(&ascii, "\u{3B1}\u{4E2D}"), "\u{3B1}\u{4E2D}");
    }

    #[test]
    fn a_text_is_cut_where_its_analyzer_cuts() {
        let filters = Filters {
            case: Case::Lower,
            ..Filters::default()
        };
        assert_eq!(text(&Analyzer::Delimited(',', filters), "A,b,,C d"), "a|b|c d");
        assert_eq!(
            text(&Analyzer::Words(filters), "It's a Test: x2."),
            "it|s|a|test|x2"
        );
        assert_eq!(
            text(&Analyzer::Letters(filters), "A-b2c d\u{E9}"),
            "a|b|c|d\u{E9}"
        );
        assert_eq!(text(&Analyzer::Spaced(Filters::default()), " A-b\t c "), "A-b|c");
    }
}
