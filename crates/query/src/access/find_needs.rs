//! Finds what a statement needs, when it is planned.
//!
//! Compat: the `authorize` of each statement of Cassandra 5.0, and `ClientState.READABLE_SYSTEM_RESOURCES`.

use ilion_auth::{Permission, Resource};
use ilion_schema::{DropFunction, Schema, SchemaChange, TableKind, TableSchema};
use ilion_types::CqlType;
use smallvec::SmallVec;

use super::needs::{Need, Needs};
use super::resource::stored_function;
use crate::plan::Plan;
use crate::select::SelectPlan;

/// The needs of a plan. `functions` are the user-defined functions and aggregates that it calls.
pub(crate) fn needs_of(plan: &Plan, functions: Vec<Resource>, schema: &Schema) -> Needs {
    let mut found = NeedFinder {
        schema,
        list: SmallVec::new(),
    };
    match plan {
        Plan::Select(select) => found.read(select.table()),
        Plan::Explain(explain) => found.read(explain.select().table()),
        Plan::Modify(modify) => found.write(modify.table(), modify.is_conditional()),
        Plan::Batch(batch) => {
            for member in batch.members() {
                found.write(member.table(), member.is_conditional());
            }
        }
        Plan::Truncate(table) => found.on_table(Permission::Modify, &table.keyspace, &table.name),
        // A change that nobody may make is refused when it is executed. The error then has that reason, not a missing permission.
        Plan::Schema(change) if schema.permit(change.change()).is_err() => {}
        Plan::Schema(change) => found.change(change.change()),
        // Statements about roles check by themselves; USE and DESCRIBE need only a login.
        Plan::Access(_) | Plan::Use(_) | Plan::Describe(_) => {}
    }
    for function in functions {
        found.add(Permission::Execute, function);
    }
    match plan {
        Plan::Select(select) => found.restrict(select),
        Plan::Explain(explain) => found.restrict(explain.select()),
        _ => {}
    }
    Needs::new(found.list)
}

/// True for the tables that everybody may read: drivers and tools read them when they connect.
fn is_public(table: &TableSchema) -> bool {
    match table.keyspace.as_str() {
        "system_schema" | "system_virtual_schema" => true,
        "system" => {
            ["local", "peers", "peers_v2", "size_estimates", "table_estimates"].contains(&table.name.as_str())
        }
        _ => false,
    }
}

struct NeedFinder<'s> {
    schema: &'s Schema,
    list: SmallVec<[Need; 1]>,
}

impl NeedFinder<'_> {
    fn add(&mut self, permission: Permission, resource: Resource) {
        let need = Need::Permission(permission, resource);
        if !self.list.contains(&need) {
            self.list.push(need);
        }
    }

    fn on_table(&mut self, permission: Permission, keyspace: &str, table: &str) {
        self.add(permission, Resource::table(keyspace, table));
    }

    fn on_all_tables(&mut self, permission: Permission, keyspace: &str) {
        self.add(permission, Resource::AllTables(keyspace.to_owned()));
    }

    fn on_keyspace(&mut self, permission: Permission, keyspace: &str) {
        self.add(permission, Resource::Keyspace(keyspace.to_owned()));
    }

    /// Reading a view needs the permission on its base table.
    fn read(&mut self, table: &TableSchema) {
        if is_public(table) {
            return;
        }
        let base = match table.kind {
            TableKind::View => self.base_of(&table.keyspace, &table.name),
            TableKind::Regular | TableKind::Virtual => None,
        };
        let name = base.unwrap_or_else(|| table.name.clone());
        self.on_table(Permission::Select, &table.keyspace, &name);
    }

    /// Compat: a view has its own UNMASK and SELECT_MASKED.
    fn restrict(&mut self, select: &SelectPlan) {
        let (table, columns) = (select.table(), select.masked_restricted());
        if !columns.is_empty() {
            let resource = Resource::table(&table.keyspace, &table.name);
            self.list.push(Need::MaskedColumns(resource, columns.to_vec()));
        }
    }

    fn base_of(&self, keyspace: &str, view: &str) -> Option<String> {
        let view = self.schema.keyspace(keyspace)?.views.get(view)?;
        Some(view.base_table.clone())
    }

    /// A conditional write needs SELECT as well, since its answer reveals stored values. A write to a table with views needs SELECT on the
    /// table, which is read, and MODIFY on each view.
    fn write(&mut self, table: &TableSchema, is_conditional: bool) {
        self.on_table(Permission::Modify, &table.keyspace, &table.name);
        let keyspace = self.schema.keyspace(&table.keyspace);
        let views: Vec<String> = keyspace
            .into_iter()
            .flat_map(|keyspace| keyspace.views_of(&table.name))
            .map(|view| view.name.clone())
            .collect();
        if is_conditional || !views.is_empty() {
            self.on_table(Permission::Select, &table.keyspace, &table.name);
        }
        for view in views {
            self.on_table(Permission::Modify, &table.keyspace, &view);
        }
    }

    fn change(&mut self, change: &SchemaChange) {
        use Permission as P;
        match change {
            SchemaChange::CreateKeyspace { .. } => self.add(P::Create, Resource::AllKeyspaces),
            SchemaChange::AlterKeyspace { name, .. } => self.on_keyspace(P::Alter, name),
            SchemaChange::DropKeyspace { name, .. } => self.on_keyspace(P::Drop, name),
            SchemaChange::CreateTable(create) => self.on_all_tables(P::Create, &create.keyspace),
            SchemaChange::CopyTable(copy) => {
                self.on_table(P::Select, &copy.source_keyspace, &copy.source);
                self.on_all_tables(P::Create, &copy.keyspace);
            }
            SchemaChange::AlterTable { keyspace, table, .. } => self.on_table(P::Alter, keyspace, table),
            SchemaChange::DropTable(drop) => self.on_table(P::Drop, &drop.keyspace, &drop.name),
            SchemaChange::CreateType { keyspace, .. } => self.on_all_tables(P::Create, keyspace),
            SchemaChange::AlterType { keyspace, .. } => self.on_all_tables(P::Alter, keyspace),
            SchemaChange::DropType(drop) => self.on_all_tables(P::Drop, &drop.keyspace),
            SchemaChange::CreateIndex(create) => self.on_table(P::Alter, &create.keyspace, &create.table),
            SchemaChange::DropIndex(drop) => {
                let keyspace = self.schema.keyspace(&drop.keyspace);
                if let Some(index) = keyspace.and_then(|keyspace| keyspace.indexes.get(&drop.name)) {
                    self.on_table(P::Alter, &drop.keyspace, &index.table);
                }
            }
            SchemaChange::CreateView(create) => self.on_table(P::Alter, &create.keyspace, &create.base),
            SchemaChange::AlterView { keyspace, view, .. } => self.on_base_of(keyspace, view),
            SchemaChange::DropView(drop) => self.on_base_of(&drop.keyspace, &drop.name),
            SchemaChange::CreateTrigger { .. } => self.list.push(Need::Superuser("CREATE TRIGGER")),
            SchemaChange::DropTrigger { .. } => self.list.push(Need::Superuser("DROP TRIGGER")),
            SchemaChange::CreateFunction(create) => {
                let types: Vec<CqlType> = create.arguments.iter().map(|(_, ty)| ty.clone()).collect();
                self.make_function(&create.keyspace, &create.name, &types, create.or_replace);
            }
            SchemaChange::CreateAggregate(create) => {
                let (keyspace, types) = (&create.keyspace, &create.argument_types);
                self.make_function(keyspace, &create.name, types, create.or_replace);
                let state: Vec<CqlType> = std::iter::once(&create.state_type)
                    .chain(types)
                    .cloned()
                    .collect();
                self.add(
                    P::Execute,
                    stored_function(keyspace, &create.state_func, &state, self.schema),
                );
                if let Some(last) = &create.final_func {
                    self.add(
                        P::Execute,
                        stored_function(keyspace, last, &state[..1], self.schema),
                    );
                }
            }
            SchemaChange::DropFunction(drop) | SchemaChange::DropAggregate(drop) => self.drop_function(drop),
        }
    }

    fn on_base_of(&mut self, keyspace: &str, view: &str) {
        if let Some(base) = self.base_of(keyspace, view) {
            self.on_table(Permission::Alter, keyspace, &base);
        }
    }

    fn has(&self, keyspace: &str, name: &str, types: &[CqlType]) -> bool {
        self.schema.keyspace(keyspace).is_some_and(|keyspace| {
            keyspace.find_function(name, types).is_some() || keyspace.find_aggregate(name, types).is_some()
        })
    }

    /// The argument types of the functions and aggregates of this name.
    fn overloads(&self, keyspace: &str, name: &str) -> impl Iterator<Item = Vec<CqlType>> {
        let keyspace = self.schema.keyspace(keyspace);
        let functions = keyspace.into_iter().flat_map(|keyspace| &keyspace.functions);
        let functions = functions
            .filter(move |function| function.name == name)
            .map(|function| function.argument_types().cloned().collect());
        let aggregates = keyspace.into_iter().flat_map(|keyspace| &keyspace.aggregates);
        let aggregates = aggregates
            .filter(move |aggregate| aggregate.name == name)
            .map(|aggregate| aggregate.argument_types.clone());
        functions.chain(aggregates)
    }

    fn make_function(&mut self, keyspace: &str, name: &str, types: &[CqlType], or_replace: bool) {
        match or_replace && self.has(keyspace, name, types) {
            true => self.add(
                Permission::Alter,
                stored_function(keyspace, name, types, self.schema),
            ),
            false => self.add(Permission::Create, Resource::AllFunctionsIn(keyspace.to_owned())),
        }
    }

    /// Without argument types, every function of the name may be meant. A missing function needs no permission: the statement fails or has
    /// no effect.
    fn drop_function(&mut self, drop: &DropFunction) {
        let meant: Vec<Vec<CqlType>> = match &drop.argument_types {
            Some(types) if !self.has(&drop.keyspace, &drop.name, types) => Vec::new(),
            Some(types) => vec![types.clone()],
            None => self.overloads(&drop.keyspace, &drop.name).collect(),
        };
        for types in meant {
            let function = stored_function(&drop.keyspace, &drop.name, &types, self.schema);
            self.add(Permission::Drop, function);
        }
    }
}
