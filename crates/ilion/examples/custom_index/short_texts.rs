//! An index class of an application: the table index, for texts up to the length in its option. Writes of longer texts are refused.
//! An application may want this limit for names that it looks up.

use std::sync::Arc;

use ilion::CqlType;
use ilion::index::rows::{Data, Mutation};
use ilion::index::{Definition, Error, IndexClass, Predicate, SecondaryIndex, Storage, TableIndexClass};

/// `CREATE CUSTOM INDEX .. USING 'com.example.ShortTexts' WITH OPTIONS = {'bytes_max': '100'}`.
pub struct ShortTexts;

/// One index of the class.
struct ShortTextIndex {
    bytes_max: usize,
    /// Keeps and finds the entries.
    entries: Arc<dyn SecondaryIndex>,
}

fn bytes_max(definition: &Definition) -> Result<usize, Error> {
    let refused = || Error::Config("bytes_max must be a number of bytes".to_owned());
    let given = definition.option("bytes_max").ok_or_else(refused)?;
    given.parse().map_err(|_| refused())
}

impl IndexClass for ShortTexts {
    fn names(&self) -> &[&str] {
        &["com.example.ShortTexts"]
    }

    fn validate(&self, definition: &Definition) -> Result<(), Error> {
        bytes_max(definition)?;
        if definition.column.ty != CqlType::Text {
            return Err(Error::Invalid(format!(
                "{} is not a column of text",
                definition.column.name
            )));
        }
        TableIndexClass.validate(definition)
    }

    fn open(&self, definition: Definition) -> Result<Arc<dyn SecondaryIndex>, Error> {
        Ok(Arc::new(ShortTextIndex {
            bytes_max: bytes_max(&definition)?,
            entries: TableIndexClass.open(definition)?,
        }))
    }
}

impl SecondaryIndex for ShortTextIndex {
    fn definition(&self) -> &Definition {
        self.entries.definition()
    }

    fn serves(&self, predicate: &Predicate) -> bool {
        self.entries.serves(predicate)
    }

    fn check(&self, mutation: &Mutation) -> Result<(), Error> {
        let column = &self.definition().column;
        let rows = mutation.update.rows.iter().chain(&mutation.update.static_row);
        for row in rows {
            if let Some(Data::Simple(cell)) = row.column(column.id)
                && cell.value.len() > self.bytes_max
            {
                return Err(Error::Invalid(format!(
                    "{} may have {} bytes, not {}",
                    column.name,
                    self.bytes_max,
                    cell.value.len()
                )));
            }
        }
        self.entries.check(mutation)
    }

    fn storage(&self) -> Storage<'_> {
        self.entries.storage()
    }
}
