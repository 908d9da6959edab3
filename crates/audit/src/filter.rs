//! Which entries are recorded. Pure.

use crate::entry::Entry;

/// Names that are included or excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    included: Vec<String>,
    excluded: Vec<String>,
}

impl Choice {
    /// A choice by name. Without included names, all names but the excluded ones are included.
    ///
    /// Compat: as in `AuditLogFilter.loadInputSets`, a name in both lists is excluded, and does not count as an included name.
    pub fn new(included: Vec<String>, excluded: Vec<String>) -> Self {
        let included = included.into_iter().filter(|name| !excluded.contains(name));
        Self {
            included: included.collect(),
            excluded,
        }
    }

    /// The names that are included; an empty list includes all.
    pub fn included(&self) -> &[String] {
        &self.included
    }

    /// The names that are excluded.
    pub fn excluded(&self) -> &[String] {
        &self.excluded
    }

    /// True if entries with this name are recorded. If there are included names, entries without a name are not.
    fn admits(&self, name: Option<&str>) -> bool {
        let is_in = |names: &[String]| name.is_some_and(|name| names.iter().any(|listed| listed == name));
        !is_in(&self.excluded) && (self.included.is_empty() || is_in(&self.included))
    }
}

/// Which entries are recorded: those that all three choices admit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// By keyspace.
    pub keyspaces: Choice,
    /// By the name of the category.
    pub categories: Choice,
    /// By role.
    pub users: Choice,
}

impl Filter {
    /// True if the entry is recorded.
    pub fn admits(&self, entry: &Entry<'_>) -> bool {
        let category = entry.entry_type.category().name();
        self.categories.admits(Some(category))
            && self.users.admits(entry.user)
            && self.keyspaces.admits(entry.keyspace)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use super::*;
    use crate::entry::EntryType;

    fn choice(included: &[&str], excluded: &[&str]) -> Choice {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Choice::new(owned(included), owned(excluded))
    }

    #[test]
    fn exclusion_wins_and_no_inclusion_means_all() {
        for (included, excluded, admitted) in [
            (&[][..], &[][..], [true, true, true]),
            (&["a"], &[], [true, false, false]),
            (&[], &["a"], [false, true, true]),
            (&["a"], &["b"], [true, false, false]),
            (&["a", "b"], &["a"], [false, true, false]),
            // Compat: the only included name is excluded, so there is none left and all others are included.
            (&["a"], &["a"], [false, true, true]),
        ] {
            let choice = choice(included, excluded);
            let found = [Some("a"), Some("b"), None].map(|name| choice.admits(name));
            assert_eq!(found, admitted, "included {included:?}, excluded {excluded:?}");
        }
    }

    #[test]
    fn an_entry_must_be_admitted_by_keyspace_category_and_user() {
        let entry = Entry {
            user: Some("bob"),
            host: IpAddr::from([127, 0, 0, 1]),
            source: SocketAddr::from(([127, 0, 0, 1], 1)),
            timestamp_millis: 0,
            entry_type: EntryType::Select,
            batch: None,
            keyspace: Some("shop"),
            scope: None,
            operation: "SELECT",
        };
        let all = Filter::default();
        assert!(all.admits(&entry));
        let keyspaces = Filter {
            keyspaces: choice(&["other"], &[]),
            ..all.clone()
        };
        assert!(!keyspaces.admits(&entry));
        let categories = Filter {
            categories: choice(&[], &["QUERY"]),
            ..all.clone()
        };
        assert!(!categories.admits(&entry));
        assert!(categories.admits(&Entry {
            entry_type: EntryType::Update,
            ..entry
        }));
        let users = Filter {
            users: choice(&["alice"], &[]),
            ..all
        };
        assert!(!users.admits(&entry));
        assert!(users.admits(&Entry {
            user: Some("alice"),
            ..entry
        }));
    }
}
