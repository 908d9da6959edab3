//! [`Verb`]: one verb of nodetool, and short constructors for the tables of verbs.

use crate::Failure;

use super::super::call::Call;
use super::super::shape::{Flag, Shape};

/// How Ilion implements a verb.
#[derive(Clone, Copy)]
pub enum Act {
    /// This function executes it.
    Own(fn(&Call) -> Result<(), Failure>),
    /// It is another name for a command of `ilion`, which begins with these arguments.
    Is(&'static [&'static str]),
    /// Ilion refuses it, for this reason.
    Refused(&'static str),
}

/// A verb of nodetool.
#[derive(Clone, Copy)]
pub struct Verb {
    /// Its name.
    pub name: &'static str,
    /// Its options, except those that name the node.
    pub options: &'static [Flag],
    /// Names of its other arguments. Those that end with `?` may be left out, and those with `*` may be given any number of times.
    pub values: &'static [&'static str],
    /// How Ilion implements it.
    pub act: Act,
    /// Its description in the list of verbs; empty if it is refused.
    pub does: &'static str,
}

impl Verb {
    /// What its arguments look like.
    pub fn shape(&self) -> Shape {
        Shape {
            name: self.name,
            options: self.options,
            values: self.values,
        }
    }

    /// The text of `nodetool help VERB`.
    pub fn help(&self) -> String {
        let refused = match self.act {
            Act::Refused(reason) => {
                return format!("nodetool {} means nothing here: {reason}", self.name);
            }
            Act::Is(command) => {
                return format!(
                    "nodetool {}: {}\nIts arguments are those of: ilion {} --help",
                    self.name,
                    self.does,
                    command.join(" ")
                );
            }
            Act::Own(_) => self.does,
        };
        let options = self.options.iter().map(|option| {
            let names = match option.short {
                "" => option.long.to_owned(),
                short => format!("{short}|{}", option.long),
            };
            match option.value {
                Some(value) => format!(" [{names} <{value}>]"),
                None => format!(" [{names}]"),
            }
        });
        let values = self
            .values
            .iter()
            .zip(self.shape().value_names())
            .map(|(name, plain)| match name.chars().last() {
                Some('?') => format!(" [<{plain}>]"),
                Some('*') => format!(" [<{plain}>...]"),
                _ => format!(" <{plain}>"),
            });
        format!(
            "nodetool {}: {refused}\nusage: nodetool [-h <host>] [-p <port>] [-u <username>] [-pw <password> | -pwf <file>] {}{}{}",
            self.name,
            self.name,
            options.collect::<String>(),
            values.collect::<String>()
        )
    }
}

pub(super) const fn flag(short: &'static str, long: &'static str) -> Flag {
    Flag {
        short,
        long,
        value: None,
    }
}

pub(super) const fn valued(short: &'static str, long: &'static str, value: &'static str) -> Flag {
    Flag {
        short,
        long,
        value: Some(value),
    }
}

pub(super) const fn own(
    name: &'static str,
    options: &'static [Flag],
    values: &'static [&'static str],
    run: fn(&Call) -> Result<(), Failure>,
    does: &'static str,
) -> Verb {
    Verb {
        name,
        options,
        values,
        act: Act::Own(run),
        does,
    }
}

pub(super) const fn is(name: &'static str, command: &'static [&'static str], does: &'static str) -> Verb {
    Verb {
        name,
        options: &[],
        values: &[],
        act: Act::Is(command),
        does,
    }
}

pub(super) const fn refused(name: &'static str, reason: &'static str) -> Verb {
    Verb {
        name,
        options: &[],
        values: &[],
        act: Act::Refused(reason),
        does: "",
    }
}
