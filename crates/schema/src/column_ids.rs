//! Column ids of a schema that is read again.
//!
//! Rows in memory have column ids ([`crate::ColumnId`]), but `system_schema` has none: a table that is read from it gets new
//! ids. During a replay, memtables already have rows. So each column must keep the id it has in these rows, and a new column must
//! not get the id of a dropped one.

use std::sync::Arc;

use crate::{Column, ColumnId, ColumnKind, Schema, TableSchema};

impl Schema {
    /// The same schema with the column ids of an earlier schema in this process.
    #[must_use]
    pub fn with_column_ids_of(mut self, earlier: &Self) -> Self {
        for keyspace in self.keyspaces.values_mut() {
            let renumbered: Vec<Arc<TableSchema>> = keyspace
                .tables
                .values()
                .filter_map(|table| {
                    let known = earlier.keyspaces.get(&keyspace.name)?.tables.get(&table.name)?;
                    if Arc::ptr_eq(known, table) {
                        return None;
                    }
                    (known.id == table.id && known != table).then(|| table.with_column_ids_of(known))
                })
                .collect();
            if !renumbered.is_empty() {
                let keyspace = Arc::make_mut(keyspace);
                keyspace
                    .tables
                    .extend(renumbered.into_iter().map(|table| (table.name.clone(), table)));
            }
        }
        self
    }
}

impl TableSchema {
    /// The same table with column ids that depend on nothing but its columns: they ascend in storage order. `None`: they do so already.
    pub fn with_column_ids_in_order(&self) -> Option<Arc<Self>> {
        let ids_ascend = self.statics().is_sorted_by_key(|column| column.id)
            && self.regulars().is_sorted_by_key(|column| column.id);
        if ids_ascend {
            return None;
        }
        let mut builder = self.to_builder();
        let columns = self.partition_key().chain(self.clustering());
        let columns = columns.chain(self.statics()).chain(self.regulars()).cloned();
        let numbered = columns.zip(0..).map(|(column, id)| Column {
            id: ColumnId(id),
            ..column
        });
        builder.columns = numbered.map(Some).collect();
        Some(builder.build())
    }

    fn with_column_ids_of(&self, earlier: &Self) -> Arc<Self> {
        let mut builder = self.to_builder();
        let mut new: Vec<Option<Column>> = std::mem::take(&mut builder.columns);
        let mut columns = Vec::with_capacity(earlier.columns.len().max(new.len()));
        for known in &earlier.columns {
            let is_same = |column: &Option<Column>| match (column, known) {
                (Some(column), Some(known)) => self.is_same_column(column, earlier, known),
                _ => false,
            };
            columns.push(
                new.iter_mut()
                    .find(|column| is_same(column))
                    .and_then(Option::take),
            );
        }
        columns.extend(new.into_iter().flatten().map(Some));
        for (id, column) in (0..).zip(&mut columns) {
            if let Some(column) = column {
                column.id = ColumnId(id);
            }
        }
        builder.columns = columns;
        builder.build()
    }

    /// True if a column of this table is the same as one of the earlier table. A key column may have another name now. Any other column
    /// may have been dropped and created again with the same name, and then it is not the same.
    fn is_same_column(&self, column: &Column, earlier: &Self, known: &Column) -> bool {
        let is_of_key = matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering);
        column.kind == known.kind
            && match is_of_key {
                true => column.position == known.position,
                false => {
                    column.name == known.name
                        && column.is_complex() == known.is_complex()
                        && self.dropped.get(&column.name) == earlier.dropped.get(&known.name)
                }
            }
    }
}

#[cfg(test)]
mod tests {
    use ilion_types::CqlType;

    use crate::{ClusteringOrder, ColumnId, ColumnKind, DroppedColumn, TableBuilder, TableId};

    fn builder(regulars: &[&str]) -> TableBuilder {
        let builder = TableBuilder::new("ks", "t", TableId(uuid::Uuid::nil()))
            .partition_key("k", CqlType::Int)
            .clustering("c", CqlType::Int, ClusteringOrder::Asc);
        let regular = |builder: TableBuilder, name: &&str| builder.regular(*name, CqlType::Text);
        regulars.iter().fold(builder, regular)
    }

    fn dropped(name: &str, dropped_micros: i64) -> (String, DroppedColumn) {
        let column = DroppedColumn {
            name: name.to_owned(),
            kind: ColumnKind::Regular,
            ty: CqlType::Text,
            dropped_micros,
        };
        (name.to_owned(), column)
    }

    #[test]
    fn ids_in_order_depend_on_the_columns_only() {
        let first = builder(&["v", "x"]).build();
        assert_eq!(first.with_column_ids_in_order(), None);
        let added = builder(&["a", "v", "x"]).build().with_column_ids_of(&first);
        let in_order = added.with_column_ids_in_order().unwrap();
        let ids: Vec<ColumnId> = in_order.regulars().map(|column| column.id).collect();
        assert_eq!(ids, [2, 3, 4].map(ColumnId));
        assert_eq!(in_order, builder(&["a", "v", "x"]).build());
    }

    #[test]
    fn a_column_keeps_its_id_and_a_new_one_never_gets_that_of_a_dropped_one() {
        let first = builder(&["v", "x"]).build();
        let id = |table: &crate::TableSchema, name: &str| table.column_named(name).map(|column| column.id);
        // Read again, `a` comes before `v`.
        let second = builder(&["a", "v", "x"]).build().with_column_ids_of(&first);
        assert_eq!(
            ["v", "x", "a"].map(|name| id(&second, name)),
            [2, 3, 4].map(|id| Some(ColumnId(id)))
        );
        let names: Vec<&str> = second.regulars().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["a", "v", "x"], "the order in files stays");
        // `v` is dropped.
        let mut third = builder(&["a", "x"]);
        third.dropped.extend([dropped("v", 1000)]);
        let third = third.build().with_column_ids_of(&second);
        assert_eq!(
            ["x", "a"].map(|name| id(&third, name)),
            [3, 4].map(|id| Some(ColumnId(id)))
        );
        assert_eq!(third.column(ColumnId(2)), None);
        // `v` is created again; `x` is dropped and created again in one step.
        let mut fourth = builder(&["a", "v", "x"]);
        fourth.dropped.extend([dropped("v", 1000), dropped("x", 2000)]);
        let fourth = fourth.build().with_column_ids_of(&third);
        assert_eq!(
            ["a", "v", "x"].map(|name| id(&fourth, name)),
            [4, 5, 6].map(|id| Some(ColumnId(id)))
        );
        assert_eq!([2, 3].map(|id| fourth.column(ColumnId(id))), [None, None]);
    }
}
