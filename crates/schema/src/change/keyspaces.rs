//! CREATE, ALTER and DROP KEYSPACE.

use std::sync::Arc;

use crate::error::{config, invalid};
use crate::names::check_keyspace_name;
use crate::{Error, Keyspace, Properties, Replication, Schema};

const KNOWN: [&str; 2] = ["replication", "durable_writes"];

impl Schema {
    pub(super) fn create_keyspace(
        &self,
        name: &str,
        properties: &Properties,
        if_not_exists: bool,
    ) -> Result<Option<Schema>, Error> {
        check_properties(properties)?;
        if !properties.0.contains_key("replication") {
            return invalid("Missing mandatory option 'replication'");
        }
        if self.keyspace(name).is_some() {
            return match if_not_exists {
                true => Ok(None),
                false => Err(Error::AlreadyExists {
                    keyspace: name.to_owned(),
                    table: String::new(),
                }),
            };
        }
        check_keyspace_name(name)?;
        let replication = replication(name, properties, None)?;
        let durable_writes = properties.boolean("durable_writes")?.unwrap_or(true);
        Ok(Some(self.with(Keyspace::new(name, replication, durable_writes))))
    }

    pub(super) fn alter_keyspace(
        &self,
        name: &str,
        properties: &Properties,
        if_exists: bool,
    ) -> Result<Option<Schema>, Error> {
        check_properties(properties)?;
        if self.keyspace(name).is_none() && if_exists {
            return Ok(None);
        }
        let mut keyspace = Keyspace::clone(self.existing(name)?);
        keyspace.replication = replication(name, properties, Some(&keyspace.replication))?;
        keyspace.durable_writes = properties
            .boolean("durable_writes")?
            .unwrap_or(keyspace.durable_writes);
        Ok(Some(self.with(keyspace)))
    }

    pub(super) fn drop_keyspace(&self, name: &str, if_exists: bool) -> Result<Option<Schema>, Error> {
        let mut next = self.clone();
        match next.keyspaces.remove(name) {
            Some(_) => Ok(Some(next)),
            None if if_exists => Ok(None),
            None => invalid(format!("Keyspace '{name}' doesn't exist")),
        }
    }

    /// This schema with `change` made to one keyspace.
    pub(super) fn with_changed(
        &self,
        keyspace: &Arc<Keyspace>,
        change: impl FnOnce(&mut Keyspace),
    ) -> Schema {
        let mut changed = Keyspace::clone(keyspace);
        change(&mut changed);
        self.with(changed)
    }
}

fn check_properties(properties: &Properties) -> Result<(), Error> {
    properties.only(&KNOWN)?;
    match properties.map("replication")? {
        Some(options) if !options.is_empty() && !options.contains_key("class") => {
            config("Missing replication strategy class")
        }
        _ => Ok(()),
    }
}

fn replication(
    keyspace: &str,
    properties: &Properties,
    previous: Option<&Replication>,
) -> Result<Replication, Error> {
    match (properties.map("replication")?, previous) {
        (Some(options), _) if options.contains_key("class") => {
            Replication::parse(keyspace, options, previous)
        }
        (_, Some(previous)) => Ok(previous.clone()),
        _ => config("Missing replication strategy class"),
    }
}
