//! [`Verb`]: one verb of nodetool, and the short ways to write one down.

use crate::Failure;

use super::super::call::Call;
use super::super::shape::{Flag, Shape};

/// What a verb is here.
#[derive(Clone, Copy)]
pub enum Act {
    /// It is done here.
    Own(fn(&Call) -> Result<(), Failure>),
    /// It is another name of a command of `ilion`, whose first arguments these are.
    Is(&'static [&'static str]),
    /// It is refused, for this reason.
    Refused(&'static str),
}

/// A verb.
#[derive(Clone, Copy)]
pub struct Verb {
    /// Its name.
    pub name: &'static str,
    /// Its options, but for those that name the node.
    pub options: &'static [Flag],
    /// Names of its other arguments: with `?` if it may be left out, with `*` if there may be any number.
    pub values: &'static [&'static str],
    /// What it is here.
    pub act: Act,
    /// What it does; empty if it is refused.
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

    /// How it is used.
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
