//! Text as the tokens that an index compares: letters of one case, one form of composed characters, without accents; split.
//! Pure.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// What becomes of letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Case {
    /// As they are.
    #[default]
    Kept,
    Lower,
    Upper,
}

/// What is done to a text, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Filters {
    pub(super) case: Case,
    /// Unicode's composed form.
    pub(super) is_normalized: bool,
    /// Letters with accents, ligatures and the like become what ASCII has for them.
    pub(super) is_ascii: bool,
}

/// How a text becomes tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Analyzer {
    /// A value is its term.
    None,
    /// A text is one token.
    Whole(Filters),
    /// It is cut at a character.
    Delimited(char, Filters),
    /// It is cut at white space.
    Spaced(Filters),
    /// Its words: letters and digits.
    Words(Filters),
    /// Its words: letters.
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

    /// Tells the tokens of a value in order. What is no text is a token as it is.
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

    /// The token that is likely met least often.
    pub(super) fn longest_token(&self, value: &[u8]) -> Option<Vec<u8>> {
        self.tokens(value).into_iter().max_by_key(Vec::len)
    }

    /// True if a value has every token of the wanted one.
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

/// Compat: as Lucene's `ASCIIFoldingFilter` folds the letters of Latin scripts; it knows some rarer ones more.
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

/// Letters and signs that Unicode does not take apart.
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
        // What is not Latin stays.
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
