//! Random definitions.

use ilion_cql::ast::{
    AlterKeyspace, AlterTable, AlterType, AlterView, ColumnDefinition, ColumnMask, CqlTypeName,
    CreateAggregate, CreateFunction, CreateIndex, CreateKeyspace, CreateMode, CreateTable, CreateTableLike,
    CreateTrigger, CreateType, CreateView, Direction, DropFunction, DropKeyspace, DropObject, DropTrigger,
    Identifier, IndexTarget, IndexTargetKind, PrimaryKey, Properties, PropertyValue, Statement, TableChange,
    TypeChange,
};

use super::Generator;

impl Generator {
    pub(super) fn definition(&mut self) -> Statement {
        match self.random.below(24) {
            0 => Statement::Use(self.name()),
            1 => Statement::Truncate(self.qualified()),
            2 => Statement::CreateKeyspace(CreateKeyspace {
                if_not_exists: self.coin(),
                keyspace: self.name(),
                properties: self.properties(1),
            }),
            3 => Statement::AlterKeyspace(AlterKeyspace {
                if_exists: self.coin(),
                keyspace: self.name(),
                properties: self.properties(1),
            }),
            4 => Statement::DropKeyspace(DropKeyspace {
                if_exists: self.coin(),
                keyspace: self.name(),
            }),
            5..=7 => Statement::CreateTable(Box::new(self.create_table())),
            8 => Statement::CreateTableLike(Box::new(CreateTableLike {
                if_not_exists: self.coin(),
                table: self.qualified(),
                source: self.qualified(),
                with_indexes: self.coin(),
                properties: self.properties(0),
            })),
            9..=11 => Statement::AlterTable(Box::new(AlterTable {
                if_exists: self.coin(),
                table: self.qualified(),
                change: self.table_change(),
            })),
            12 => Statement::DropTable(self.dropped()),
            13 => Statement::CreateType(CreateType {
                if_not_exists: self.coin(),
                name: self.qualified(),
                fields: self.several(1, Self::name_and_type),
            }),
            14 => Statement::AlterType(AlterType {
                if_exists: self.coin(),
                name: self.qualified(),
                change: self.type_change(),
            }),
            15 => Statement::DropType(self.dropped()),
            16 => Statement::CreateIndex(Box::new(self.create_index())),
            17 => Statement::DropIndex(self.dropped()),
            18 => Statement::CreateView(Box::new(self.create_view())),
            19 => Statement::AlterView(AlterView {
                if_exists: self.coin(),
                view: self.qualified(),
                properties: self.properties(1),
            }),
            20 => Statement::DropView(self.dropped()),
            21 => self.trigger(),
            22 => self.function(),
            _ => self.aggregate(),
        }
    }

    fn dropped(&mut self) -> DropObject {
        DropObject {
            if_exists: self.coin(),
            name: self.qualified(),
        }
    }

    fn name_and_type(&mut self) -> (Identifier, CqlTypeName) {
        (self.name(), self.type_name(2))
    }

    fn rename(&mut self) -> (Identifier, Identifier) {
        (self.name(), self.name())
    }

    /// At least `least`, with unique names.
    fn properties(&mut self, least: usize) -> Properties {
        let mut properties = self.several(least, |this| {
            let value = match this.coin() {
                true => PropertyValue::Text(this.string()),
                false => PropertyValue::Map(this.text_map()),
            };
            (this.name(), value)
        });
        properties.sort_by(|left, right| left.0.cmp(&right.0));
        properties.dedup_by(|left, right| left.0 == right.0);
        Properties(properties)
    }

    pub(super) fn text_map(&mut self) -> Vec<(String, String)> {
        let mut entries = self.several(0, |this| (this.string(), this.string()));
        entries.sort();
        entries.dedup_by(|left, right| left.0 == right.0);
        entries
    }

    fn clustering_order(&mut self) -> Vec<(Identifier, Direction)> {
        self.several(0, |this| (this.name(), this.direction()))
    }

    fn primary_key(&mut self) -> PrimaryKey {
        PrimaryKey {
            partition_key: self.several(1, Self::name),
            clustering: self.several(0, Self::name),
        }
    }

    fn create_table(&mut self) -> CreateTable {
        let columns = self.several(1, Self::column_definition);
        CreateTable {
            if_not_exists: self.coin(),
            table: self.qualified(),
            columns,
            primary_key: self.maybe(Self::primary_key),
            clustering_order: self.clustering_order(),
            compact_storage: self.coin(),
            properties: self.properties(0),
        }
    }

    fn column_definition(&mut self) -> ColumnDefinition {
        ColumnDefinition {
            name: self.name(),
            type_name: self.type_name(2),
            is_static: self.coin(),
            mask: self.maybe(Self::mask),
        }
    }

    fn mask(&mut self) -> ColumnMask {
        ColumnMask {
            function: self.qualified(),
            arguments: self.several(0, |this| this.term(1)),
        }
    }

    fn table_change(&mut self) -> TableChange {
        match self.random.below(7) {
            0 => TableChange::AddColumns {
                if_not_exists: self.coin(),
                columns: self.several(1, Self::column_definition),
            },
            1 => TableChange::DropColumns {
                if_exists: self.coin(),
                columns: self.several(1, Self::name),
                timestamp_micros: self.maybe(|_| "123".into()),
            },
            2 => TableChange::RenameColumns {
                if_exists: self.coin(),
                renames: self.several(1, Self::rename),
            },
            3 => TableChange::AlterColumnType {
                column: self.column(),
                type_name: self.type_name(2),
            },
            4 => TableChange::AlterColumnMask {
                if_exists: self.coin(),
                column: self.column(),
                mask: self.maybe(Self::mask),
            },
            5 => TableChange::DropCompactStorage,
            _ => TableChange::Properties(self.properties(1)),
        }
    }

    fn type_change(&mut self) -> TypeChange {
        match self.random.below(3) {
            0 => TypeChange::AddField {
                if_not_exists: self.coin(),
                field: self.name(),
                type_name: self.type_name(2),
            },
            1 => TypeChange::RenameFields {
                if_exists: self.coin(),
                renames: self.several(1, Self::rename),
            },
            _ => TypeChange::AlterField {
                field: self.name(),
                type_name: self.type_name(2),
            },
        }
    }

    fn create_index(&mut self) -> CreateIndex {
        CreateIndex {
            is_custom: self.coin(),
            if_not_exists: self.coin(),
            name: self.maybe(Self::name),
            table: self.qualified(),
            targets: self.several(0, |this| {
                let kinds = [
                    IndexTargetKind::Simple,
                    IndexTargetKind::Values,
                    IndexTargetKind::Keys,
                    IndexTargetKind::Entries,
                    IndexTargetKind::Full,
                ];
                IndexTarget {
                    kind: *this.random.pick(&kinds),
                    column: this.column(),
                }
            }),
            using: self.maybe(Self::string),
            properties: self.properties(0),
        }
    }

    fn create_view(&mut self) -> CreateView {
        let selection = self.selection();
        CreateView {
            if_not_exists: self.coin(),
            view: self.qualified(),
            selection,
            base: self.qualified(),
            relations: self.several(0, Self::relation),
            primary_key: self.primary_key(),
            clustering_order: self.clustering_order(),
            properties: self.properties(0),
        }
    }

    fn trigger(&mut self) -> Statement {
        if self.coin() {
            return Statement::DropTrigger(DropTrigger {
                if_exists: self.coin(),
                name: self.name(),
                table: self.qualified(),
            });
        }
        Statement::CreateTrigger(CreateTrigger {
            if_not_exists: self.coin(),
            name: self.name(),
            table: self.qualified(),
            class: self.string(),
        })
    }

    fn mode(&mut self) -> CreateMode {
        CreateMode {
            or_replace: self.coin(),
            if_not_exists: self.coin(),
        }
    }

    fn dropped_function(&mut self) -> DropFunction {
        DropFunction {
            if_exists: self.coin(),
            name: self.qualified(),
            argument_types: self.maybe(|this| this.several(0, |this| this.type_name(2))),
        }
    }

    fn function(&mut self) -> Statement {
        if self.coin() {
            return Statement::DropFunction(self.dropped_function());
        }
        Statement::CreateFunction(Box::new(CreateFunction {
            mode: self.mode(),
            name: self.qualified(),
            arguments: self.several(0, Self::name_and_type),
            called_on_null_input: self.coin(),
            return_type: self.type_name(2),
            language: "java".into(),
            body: self.string(),
        }))
    }

    fn aggregate(&mut self) -> Statement {
        if self.coin() {
            return Statement::DropAggregate(self.dropped_function());
        }
        Statement::CreateAggregate(Box::new(CreateAggregate {
            mode: self.mode(),
            name: self.qualified(),
            argument_types: self.several(0, |this| this.type_name(2)),
            state_function: self.name(),
            state_type: self.type_name(2),
            final_function: self.maybe(Self::name),
            initial_state: self.maybe(|this| this.term(2)),
        }))
    }
}
