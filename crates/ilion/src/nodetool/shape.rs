//! What the arguments of a verb look like.

/// An option of a verb.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Name with one dash; empty if there is none.
    pub short: &'static str,
    /// Name with two dashes.
    pub long: &'static str,
    /// Name of the option's value; `None` if the option takes no value.
    pub value: Option<&'static str>,
}

/// The arguments of a verb.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Name of the verb.
    pub name: &'static str,
    /// Its options, except those that name the node.
    pub options: &'static [Flag],
    /// Names of its other arguments. Those that end with `?` may be left out, and those with `*` may be given any number of times.
    pub values: &'static [&'static str],
}

impl Flag {
    /// Whether a word is this option.
    pub fn is(&self, word: &str) -> bool {
        word == self.long || (!self.short.is_empty() && word == self.short)
    }
}

impl Shape {
    /// Fewest and most values; `None` if there is no upper limit.
    pub fn value_counts(&self) -> (usize, Option<usize>) {
        let needed = self
            .values
            .iter()
            .filter(|name| !name.ends_with(['?', '*']))
            .count();
        let is_open = self.values.iter().any(|name| name.ends_with('*'));
        (needed, (!is_open).then_some(self.values.len()))
    }

    /// Names of the values.
    pub fn value_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.values.iter().map(|name| name.trim_end_matches(['?', '*']))
    }
}
