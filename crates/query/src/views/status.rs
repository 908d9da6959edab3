//! The progress of builds: `system.built_views`, `system.view_builds_in_progress` and
//! `system_distributed.view_build_status`, as Cassandra keeps them.

use bytes::Bytes;
use ilion_types::Uuid;

use super::Views;
use super::definition::ViewPlan;
use crate::internal::{self, text};
use crate::{Error, Value};

impl Views {
    /// True if the build of the view has finished.
    pub(super) fn is_built(&self, plan: &ViewPlan) -> Result<bool, Error> {
        let names = names(plan);
        let found = self.run(
            "SELECT view_name FROM system.built_views WHERE keyspace_name = ? AND view_name = ?",
            &names,
        )?;
        Ok(!found.is_empty())
    }

    /// True if the build of a view of this name has finished.
    pub(crate) fn is_built_named(&self, keyspace: &str, view: &str) -> Result<bool, Error> {
        let found = self.run(
            "SELECT view_name FROM system.built_views WHERE keyspace_name = ? AND view_name = ?",
            &[text(keyspace), text(view)],
        )?;
        Ok(!found.is_empty())
    }

    /// Stores that the view is built.
    pub(super) fn mark_built(&self, plan: &ViewPlan) -> Result<(), Error> {
        let names = names(plan);
        self.run(
            "INSERT INTO system.built_views (keyspace_name, view_name, status_replicated) VALUES (?, ?, true)",
            &names,
        )?;
        self.run(
            "DELETE FROM system.view_builds_in_progress WHERE keyspace_name = ? AND view_name = ?",
            &names,
        )?;
        self.set_status(plan, "SUCCESS")
    }

    /// Stores the status of this node's build, for other nodes.
    pub(super) fn set_status(&self, plan: &ViewPlan, status: &str) -> Result<(), Error> {
        let [keyspace, view] = names(plan);
        let host = Uuid::from_bytes(self.store.counter_id());
        let values = [
            text(status),
            keyspace,
            view,
            Value::Bytes(Bytes::copy_from_slice(host.as_bytes())),
        ];
        self.run(
            "UPDATE system_distributed.view_build_status SET status = ? \
             WHERE keyspace_name = ? AND view_name = ? AND host_id = ?",
            &values,
        )
        .map(|_| ())
    }

    /// The last token that an earlier build finished; `None` if it stored no progress.
    pub(super) fn progress(&self, plan: &ViewPlan) -> Result<Option<String>, Error> {
        let found = self.run(
            "SELECT last_token FROM system.view_builds_in_progress WHERE keyspace_name = ? AND view_name = ?",
            &names(plan),
        )?;
        let token = found.into_iter().next().flatten();
        Ok(token.map(|token| String::from_utf8_lossy(&token).into_owned()))
    }

    /// Stores the progress of a build.
    pub(super) fn set_progress(&self, plan: &ViewPlan, token: &str, keys: u64) -> Result<(), Error> {
        let [keyspace, view] = names(plan);
        let keys = i64::try_from(keys).unwrap_or(i64::MAX);
        let values = [
            keyspace,
            view,
            text(token),
            Value::Bytes(Bytes::copy_from_slice(&keys.to_be_bytes())),
        ];
        self.run(
            "INSERT INTO system.view_builds_in_progress \
             (keyspace_name, view_name, start_token, end_token, last_token, keys_built) VALUES (?, ?, '', '', ?, ?)",
            &values,
        )
        .map(|_| ())
    }

    /// Removes the stored state of a view of this name.
    pub(super) fn forget(&self, keyspace: &str, view: &str) -> Result<(), Error> {
        let names = [text(keyspace), text(view)];
        for statement in [
            "DELETE FROM system.built_views WHERE keyspace_name = ? AND view_name = ?",
            "DELETE FROM system.view_builds_in_progress WHERE keyspace_name = ? AND view_name = ?",
            "DELETE FROM system_distributed.view_build_status WHERE keyspace_name = ? AND view_name = ?",
        ] {
            self.run(statement, &names)?;
        }
        Ok(())
    }

    fn run(&self, cql: &str, values: &[Value]) -> Result<Vec<Option<Bytes>>, Error> {
        internal::run(&*self.store, &self.options, cql, values)
    }
}

fn names(plan: &ViewPlan) -> [Value; 2] {
    [text(&plan.view.keyspace), text(&plan.view.name)]
}
