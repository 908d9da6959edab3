//! Index classes by name.

use std::sync::Arc;

use ilion_schema::{IndexKind, IndexSchema};

use crate::table_index::TableIndexClass;
use crate::{IndexClass, Sai, Sasi};

/// The classes for CREATE INDEX.
#[derive(Clone, Default)]
pub struct IndexClasses {
    /// Added classes come after Ilion's own, and replace those with the same name.
    classes: Vec<Arc<dyn IndexClass>>,
    /// The class of indexes without a class name.
    table_index: Option<Arc<dyn IndexClass>>,
}

impl IndexClasses {
    /// Ilion's own classes.
    pub fn own() -> Self {
        Self {
            classes: vec![Arc::new(TableIndexClass), Arc::new(Sai), Arc::new(Sasi)],
            table_index: Some(Arc::new(TableIndexClass)),
        }
    }

    /// Adds a class. It takes precedence over earlier classes with the same name.
    #[must_use]
    pub fn with(mut self, class: Arc<dyn IndexClass>) -> Self {
        self.classes.push(class);
        self
    }

    /// The class with this name, compared without case.
    pub fn named(&self, name: &str) -> Option<&Arc<dyn IndexClass>> {
        let has_name =
            |class: &&Arc<dyn IndexClass>| class.names().iter().any(|known| known.eq_ignore_ascii_case(name));
        self.classes.iter().rev().find(has_name)
    }

    /// The class of an index definition.
    pub fn of(&self, index: &IndexSchema) -> Option<&Arc<dyn IndexClass>> {
        match index.kind {
            IndexKind::Custom => self.named(index.class_name()?),
            IndexKind::Composites | IndexKind::Keys => self.table_index.as_ref(),
        }
    }
}

impl std::fmt::Debug for IndexClasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.classes.iter().flat_map(|class| class.names());
        f.debug_list().entries(names).finish()
    }
}
