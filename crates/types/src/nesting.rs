//! Types inside types: the user types in a type, which types may be nested, and how an altered user type is replaced in the
//! columns that use it.

use std::sync::Arc;

use crate::{CqlType, Error, UserType};

impl CqlType {
    /// The types directly inside this one, including the fields of a user type.
    pub fn inner_types(&self) -> impl Iterator<Item = &CqlType> {
        let (one, two) = match self {
            Self::List { element, .. } | Self::Set { element, .. } | Self::Vector { element, .. } => {
                (Some(&**element), None)
            }
            Self::Map { key, value, .. } => (Some(&**key), Some(&**value)),
            _ => (None, None),
        };
        let components = self.components().map(|(_, ty)| ty);
        one.into_iter().chain(two).chain(components)
    }

    /// True if `wanted` accepts this type or a type inside it.
    pub fn contains(&self, wanted: &dyn Fn(&CqlType) -> bool) -> bool {
        wanted(self) || self.inner_types().any(|inner| inner.contains(wanted))
    }

    /// True if this type is or contains the user type `name` of `keyspace`.
    pub fn references_udt(&self, keyspace: &str, name: &str) -> bool {
        self.contains(&|ty| match ty {
            Self::Udt { definition, .. } => definition.keyspace == keyspace && definition.name == name,
            _ => false,
        })
    }

    /// True if this type is or contains a duration. Durations have no order, so such a type cannot be a key.
    pub fn contains_duration(&self) -> bool {
        self.contains(&|ty| matches!(ty, Self::Duration))
    }

    /// True if this type is or contains a vector.
    pub fn contains_vector(&self) -> bool {
        self.contains(&|ty| matches!(ty, Self::Vector { .. }))
    }

    /// True for types of numbers.
    pub fn is_numeric(&self) -> bool {
        matches!(
            self,
            Self::TinyInt
                | Self::SmallInt
                | Self::Int
                | Self::BigInt
                | Self::Counter
                | Self::Varint
                | Self::Decimal
                | Self::Float
                | Self::Double
        )
    }

    /// This type with all uses of a user type replaced by its new definition (same keyspace and name), also inside other user
    /// types. Where the use is frozen, the fields become frozen, too.
    pub fn with_udt(&self, new: &Arc<UserType>) -> CqlType {
        let inner = |ty: &Arc<CqlType>| Arc::new(ty.with_udt(new));
        match self {
            Self::List { element, frozen } => Self::List {
                element: inner(element),
                frozen: *frozen,
            },
            Self::Set { element, frozen } => Self::Set {
                element: inner(element),
                frozen: *frozen,
            },
            Self::Map { key, value, frozen } => Self::Map {
                key: inner(key),
                value: inner(value),
                frozen: *frozen,
            },
            Self::Vector { element, dimension } => Self::Vector {
                element: inner(element),
                dimension: *dimension,
            },
            Self::Tuple(types) => Self::Tuple(types.iter().map(|ty| ty.with_udt(new)).collect()),
            Self::Udt { definition, frozen } => {
                let same = definition.keyspace == new.keyspace && definition.name == new.name;
                let definition = if same {
                    new.clone()
                } else {
                    Arc::new(definition.with_udt(new))
                };
                let definition = match frozen {
                    true => UserType::with_frozen_fields(&definition),
                    false => definition,
                };
                Self::Udt {
                    definition,
                    frozen: *frozen,
                }
            }
            scalar => scalar.clone(),
        }
    }

    /// Checks the nesting of types in a new column or field.
    ///
    /// # Errors
    /// An inner collection or user type is not frozen, a counter is inside another type, or a duration is where an order is
    /// needed.
    pub fn check_nesting(&self) -> Result<(), Error> {
        let refused = |what: &str| Err(Error::InvalidType(format!("{what}: {self}")));
        if let Self::Tuple(members) = self
            && members.contains(&Self::Counter)
        {
            return Err(Error::InvalidType(
                "Counters are not allowed inside tuples".to_owned(),
            ));
        }
        if self.inner_types().any(|inner| *inner == Self::Counter) {
            return refused("Counters are not allowed inside collections");
        }
        if let Self::Udt { definition, .. } = self
            && let Some((name, _)) = definition.fields.iter().find(|(_, ty)| is_unfrozen_udt(ty))
        {
            return refused(&format!(
                "Non-frozen UDTs with nested non-frozen user types are not supported (field {name})"
            ));
        }
        match self {
            Self::Set { element, .. } if **element == Self::Duration => {
                return refused("Durations are not allowed inside sets");
            }
            Self::Map { key, .. } if **key == Self::Duration => {
                return refused("Durations are not allowed as map keys");
            }
            _ if self.is_collection() => {
                if self.inner_types().any(is_unfrozen_udt) {
                    return refused("Non-frozen UDTs are not allowed inside collections");
                }
                if self.inner_types().any(CqlType::is_multi_cell) {
                    return refused("Non-frozen collections are not allowed inside collections");
                }
            }
            _ => {}
        }
        self.inner_types().try_for_each(CqlType::check_nesting)
    }
}

fn is_unfrozen_udt(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Udt { frozen: false, .. })
}

impl UserType {
    /// The definition with all uses of another user type replaced by its new definition.
    pub fn with_udt(&self, new: &Arc<UserType>) -> UserType {
        UserType {
            keyspace: self.keyspace.clone(),
            name: self.name.clone(),
            fields: self
                .fields
                .iter()
                .map(|(name, ty)| (name.clone(), ty.with_udt(new)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user_type(name: &str) -> Option<Arc<UserType>> {
        let fields = match name {
            "inner" => vec![("a".to_owned(), CqlType::Int)],
            "outer" => vec![("i".to_owned(), parse("frozen<inner>"))],
            _ => return None,
        };
        Some(Arc::new(UserType {
            keyspace: "ks".into(),
            name: name.into(),
            fields,
        }))
    }

    fn parse(text: &str) -> CqlType {
        CqlType::parse_cql(text, "ks", &user_type).unwrap()
    }

    #[test]
    fn an_altered_user_type_reaches_every_use() {
        let mut altered = (*user_type("inner").unwrap()).clone();
        altered.fields.push(("b".to_owned(), parse("set<int>")));
        let altered = Arc::new(altered);
        let column = parse("map<int, frozen<outer>>");
        assert!(column.references_udt("ks", "inner"));
        assert!(!column.references_udt("other", "inner"));
        let class = column.with_udt(&altered).to_class();
        assert!(
            class.contains(
                "62:org.apache.cassandra.db.marshal.SetType(org.apache.cassandra.db.marshal.Int32Type)"
            ),
            "{class}"
        );
        assert_eq!(CqlType::from_class(&class).unwrap().0, column.with_udt(&altered));
    }

    #[test]
    fn what_cassandra_refuses_to_nest_is_refused() {
        for good in [
            "list<frozen<list<int>>>",
            "map<int, duration>",
            "outer",
            "set<frozen<outer>>",
            "frozen<map<text, set<int>>>",
            "tuple<list<int>, duration>",
        ] {
            assert_eq!(parse(good).check_nesting(), Ok(()), "{good}");
        }
        for bad in [
            "list<list<int>>",
            "set<outer>",
            "list<counter>",
            "set<duration>",
            "map<duration, int>",
            "tuple<int, counter>",
        ] {
            assert!(parse(bad).check_nesting().is_err(), "{bad}");
        }
    }
}
