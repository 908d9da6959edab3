//! The file as Ilion reads it.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use ilion_env::{Env, RealEnv};
use ilion_rows::{ClusteringFilter, Cursor as _, KeyRange, Unfiltered};
use ilion_schema::TableSchema;
use ilion_sstable::{Descriptor, OpenOptions, SSTable, Scan};

pub struct Reader {
    sstable: Arc<SSTable>,
    table: Arc<TableSchema>,
}

impl Reader {
    pub fn open(data: &Path) -> anyhow::Result<Self> {
        let env: Arc<dyn Env> = RealEnv::new();
        let (Some(directory), Some(name)) = (data.parent(), data.file_name().and_then(|name| name.to_str()))
        else {
            bail!("{} is not the path of a file", data.display());
        };
        let parsed = Descriptor::parse(&Arc::from(directory), name);
        let (descriptor, _) = parsed.with_context(|| format!("{name} is not a name of an SSTable's file"))?;
        let options = OpenOptions {
            chunk_cache: None,
            ..OpenOptions::default()
        };
        let sstable = Arc::new(SSTable::open(&env, &descriptor, &options)?);
        let table = sstable.header().to_table("bench", "table")?;
        Ok(Self { sstable, table })
    }

    /// Reads all partitions; gives the number of rows.
    pub fn read(&self) -> anyhow::Result<u64> {
        let filter = Arc::new(ClusteringFilter::all());
        let mut cursor = self
            .sstable
            .cursor(&self.table, KeyRange::all(), filter, Scan::Sequential);
        let mut rows = 0;
        while let Some(head) = cursor.next_partition()? {
            black_box(&head);
            while let Some(unfiltered) = cursor.next_unfiltered()? {
                rows += u64::from(matches!(black_box(&unfiltered), Unfiltered::Row(_)));
            }
        }
        Ok(rows)
    }
}
