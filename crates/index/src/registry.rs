//! The classes of indexes that there are, by name.

use std::sync::Arc;

use ilion_schema::{IndexKind, IndexSchema};

use crate::table_index::TableIndexClass;
use crate::{IndexClass, Sai, Sasi};

/// The classes that CREATE INDEX can ask for.
#[derive(Clone, Default)]
pub struct IndexClasses {
    /// Those of somebody else come after our own, and stand in for them if they have the same name.
    classes: Vec<Arc<dyn IndexClass>>,
    /// Of indexes that no class is named for.
    table_index: Option<Arc<dyn IndexClass>>,
}

impl IndexClasses {
    /// The classes that Ilion brings.
    pub fn own() -> Self {
        Self {
            classes: vec![Arc::new(TableIndexClass), Arc::new(Sai), Arc::new(Sasi)],
            table_index: Some(Arc::new(TableIndexClass)),
        }
    }

    /// Adds a class. It is found under its names before any that was there.
    #[must_use]
    pub fn with(mut self, class: Arc<dyn IndexClass>) -> Self {
        self.classes.push(class);
        self
    }

    /// Sets the class of indexes that no class is named for.
    #[must_use]
    pub fn with_table_index(mut self, class: Arc<dyn IndexClass>) -> Self {
        self.table_index = Some(class);
        self
    }

    /// The class with this name, compared without regard to case.
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
