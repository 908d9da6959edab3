//! How a SELECT finds its rows, as text for EXPLAIN.

use bytes::Bytes;
use ilion_engine::ReadSurvey;
use ilion_env::Count;
use ilion_rows::{Bound, BoundKind, ClusteringFilter, DecoratedKey, KeyBound, KeyRange, Slice};
use ilion_schema::{Column, TableSchema};

use super::SelectPlan;
use super::nearest::Nearest;
use super::row_view::key_components;
use crate::Error;
use crate::context::Execution;
use crate::explain::Steps;
use crate::restrictions::SearchPlan;

/// Largest number of partitions, slices and SSTables that are listed one by one.
const TOLD_MAX: usize = 8;

impl SelectPlan {
    /// Describes what is read, in which order, and which checks follow. Every way to find rows has a step here.
    pub fn describe_access(&self, execution: &Execution<'_>, steps: &mut Steps) -> Result<(), Error> {
        steps.say("table", format!("{}.{}", self.table.keyspace, self.table.name));
        let filter = ClusteringFilter {
            slices: self.restrictions.slices(execution)?,
            reversed: self.order.is_reversed,
            ..self.all_rows.clone()
        };
        if filter.slices.is_empty() {
            steps.say("access", "nothing: no row can match");
        } else if let Some(nearest) = &self.nearest {
            self.describe_nearest(nearest, execution, steps)?;
        } else if let Some(search) = self.restrictions.search_plan(&self.table, execution)? {
            self.describe_search(&search, execution, steps)?;
        } else if self.restrictions.is_by_key() {
            self.describe_keys(&filter, execution, steps)?;
        } else {
            self.describe_range(execution, steps)?;
        }
        self.describe_slices(&filter, steps);
        self.describe_columns(steps);
        self.describe_checks(steps);
        self.describe_order(steps);
        self.describe_limits(execution, steps)
    }

    fn describe_keys(
        &self,
        filter: &ClusteringFilter,
        execution: &Execution<'_>,
        steps: &mut Steps,
    ) -> Result<(), Error> {
        let keys = self.restrictions.partition_keys(execution)?;
        steps.say(
            "access",
            match keys.len() {
                0 => "nothing: no partition can match".to_owned(),
                1 if self.restrictions.is_one_row() => "one row by its primary key".to_owned(),
                1 => "one partition by its key".to_owned(),
                count => format!("{count} partitions by their keys, one after another"),
            },
        );
        for key in keys.iter().take(TOLD_MAX) {
            let shown = self.shown_key(key)?;
            steps.say("partition", format!("{shown} (token {})", key.token));
            if let Some(survey) = execution.store.survey_partition(&self.table, key, filter) {
                describe_survey(&survey, steps);
            }
        }
        if let Some(more) = keys.len().checked_sub(TOLD_MAX).filter(|more| *more > 0) {
            steps.say("partition", format!("and {more} more"));
        }
        Ok(())
    }

    fn describe_nearest(
        &self,
        nearest: &Nearest,
        execution: &Execution<'_>,
        steps: &mut Steps,
    ) -> Result<(), Error> {
        let index = self.restrictions.ranking_index(&nearest.column, execution)?;
        let name = &index.definition().schema.name;
        let column = &nearest.column.name;
        if !self.measures_all(execution)? {
            steps.say(
                "access",
                format!("rows by nearness of {column}, until nothing nearer can come"),
            );
            steps.say("index", name);
            return Ok(());
        }
        steps.say(
            "access",
            format!("all rows that are asked for, measured by {column}"),
        );
        match self.restrictions.search_plan(&self.table, execution)? {
            Some(search) => self.describe_search(&search, execution, steps),
            None => Ok(()),
        }
    }

    /// Describes the indexes that find the rows, their predicates and estimated costs.
    fn describe_search(
        &self,
        search: &SearchPlan,
        execution: &Execution<'_>,
        steps: &mut Steps,
    ) -> Result<(), Error> {
        let uses = search.describe(&self.table, execution)?;
        let access = match uses.len() {
            count if search.unites() => {
                format!("rows of any branch that {count} searches in indexes find, in the order of the table")
            }
            1 => "rows that an index finds, in the order of the table".to_owned(),
            count => format!("rows that {count} indexes find, in the order of the table"),
        };
        steps.say("access", access);
        for one in uses {
            let (rows, files) = (one.estimate.rows, one.estimate.files);
            let cost = format!("about {rows} rows, {files} files may be read");
            steps.say("index", format!("{}: {}; {cost}", one.index, one.asked));
        }
        if self.restrictions.is_by_key() {
            if let Some(key) = self.restrictions.only_key(execution)? {
                let shown = self.shown_key(&key)?;
                steps.say("partition", format!("{shown} (token {})", key.token));
            }
            return Ok(());
        }
        match self.restrictions.key_range(execution)? {
            Some(range) if range == KeyRange::all() => {}
            Some(range) => steps.say("token range", shown_range(&range)),
            None => steps.say("token range", "nothing"),
        }
        Ok(())
    }

    fn shown_key(&self, key: &DecoratedKey) -> Result<String, Error> {
        let values = key_components(&self.table, &key.key)?;
        let columns = self.table.partition_key();
        let shown: Vec<String> = columns
            .zip(&values)
            .map(|(column, value)| format!("{} = {}", column.name, literal(column, value)))
            .collect();
        Ok(shown.join(" AND "))
    }

    fn describe_range(&self, execution: &Execution<'_>, steps: &mut Steps) -> Result<(), Error> {
        let Some(range) = self.restrictions.key_range(execution)? else {
            steps.say("access", "nothing: no partition can match");
            return Ok(());
        };
        if range == KeyRange::all() {
            steps.say("access", "all partitions, by token");
        } else {
            steps.say("access", "partitions of a range of tokens");
            steps.say("token range", shown_range(&range));
        }
        if let Some(survey) = execution.store.survey_range(&self.table, &range) {
            describe_survey(&survey, steps);
        }
        Ok(())
    }

    fn describe_slices(&self, filter: &ClusteringFilter, steps: &mut Steps) {
        if self.table.clustering().next().is_none() {
            return;
        }
        if filter.slices == [Slice::all()] {
            steps.say("slices", "all rows of each partition");
            return;
        }
        for slice in filter.slices.iter().take(TOLD_MAX) {
            steps.say("slice", shown_slice(&self.table, slice));
        }
        if let Some(more) = filter.slices.len().checked_sub(TOLD_MAX).filter(|more| *more > 0) {
            steps.say("slice", format!("and {more} more"));
        }
    }

    fn describe_columns(&self, steps: &mut Steps) {
        let Some(wanted) = &self.all_rows.columns else {
            steps.say("columns", "all");
            return;
        };
        let names = wanted
            .iter()
            .filter_map(|id| Some(self.table.column(*id)?.name.as_str()));
        let names: Vec<&str> = names.collect();
        let shown = match names.is_empty() {
            true => "those of the primary key".to_owned(),
            false => names.join(", "),
        };
        steps.say("columns", shown);
    }

    fn describe_checks(&self, steps: &mut Steps) {
        if !self.restrictions.is_filtering() {
            return;
        }
        let mut names: Vec<&str> = Vec::new();
        for column in self.restrictions.checked_columns() {
            if !names.contains(&column.name.as_str()) {
                names.push(&column.name);
            }
        }
        let names = names.join(", ");
        steps.say("filtering", format!("every row read is checked by {names}"));
    }

    fn describe_order(&self, steps: &mut Steps) {
        if self.table.clustering().next().is_none() {
            return;
        }
        let order = if self.nearest.is_some() {
            "the nearest first".to_owned()
        } else if self.order.is_sorting() {
            let columns = self
                .order
                .sort_by
                .iter()
                .map(|(column, direction)| match direction {
                    ilion_cql::ast::Direction::Ascending => column.name.clone(),
                    ilion_cql::ast::Direction::Descending => format!("{} descending", column.name),
                });
            let columns: Vec<String> = columns.collect();
            format!("all rows are sorted in memory by {}", columns.join(", "))
        } else if self.order.is_reversed {
            "each partition from its last row to its first".to_owned()
        } else {
            "as stored".to_owned()
        };
        steps.say("order", order);
    }

    fn describe_limits(&self, execution: &Execution<'_>, steps: &mut Steps) -> Result<(), Error> {
        if self.is_distinct {
            steps.say("distinct", "one row of each partition");
        }
        if self.group_by.is_some() {
            steps.say("groups", "rows of a group are made one");
        } else if self.is_aggregate() {
            steps.say("groups", "all rows are made one");
        }
        let limits = self.limits.evaluate(execution)?;
        if let Some(limit) = limits.per_partition {
            steps.say("limit", format!("{limit} of each partition"));
        }
        if let Some(limit) = limits.rows {
            steps.say("limit", limit.to_string());
        }
        Ok(())
    }
}

fn describe_survey(survey: &ReadSurvey, steps: &mut Steps) {
    if survey.is_row_cached {
        steps.say("row cache", "asked first");
    }
    steps.say("memtables", survey.memtables.to_string());
    let ask = &survey.to_ask;
    let mut detail = format!("{} of {} may be read", ask.len(), survey.sstables);
    if !ask.is_empty() {
        let named = ask.iter().take(TOLD_MAX).map(String::as_str);
        detail += &format!(": {}", named.collect::<Vec<_>>().join(", "));
        if ask.len() > TOLD_MAX {
            detail += ", ..";
        }
        if survey.ends_early {
            detail += "; newest first, until nothing older can be seen";
        }
    }
    steps.say("sstables", detail);
    for (why, count) in &survey.skipped {
        let why = match why {
            Count::SkippedByKeyRange => "the key is not between their first and last",
            Count::SkippedByFilter => "the token map or the Bloom filter excludes the key",
            Count::SkippedBySortedView => "the sorted view excludes the key",
            Count::SkippedByClustering => "their rows lie elsewhere in the partition",
            other => other.name(),
        };
        steps.say("sstables left alone", format!("{count}: {why}"));
    }
}

fn literal(column: &Column, value: &Bytes) -> String {
    let printed = column.ty.print_literal(value);
    printed.unwrap_or_else(|_| format!("0x{}", ilion_types::hex::print(value)))
}

fn shown_range(range: &KeyRange) -> String {
    let start = match &range.start {
        KeyBound::Start | KeyBound::End => "from the first".to_owned(),
        KeyBound::AfterToken(token) => format!("above {token}"),
        KeyBound::BeforeToken(token) => format!("from {token}"),
        KeyBound::Before(key) | KeyBound::After(key) => format!("from {}", key.token),
    };
    let end = match &range.end {
        KeyBound::Start | KeyBound::End => "to the last".to_owned(),
        KeyBound::BeforeToken(token) => format!("below {token}"),
        KeyBound::AfterToken(token) => format!("to {token}"),
        KeyBound::Before(key) | KeyBound::After(key) => format!("to {}", key.token),
    };
    format!("{start} {end}")
}

fn shown_slice(table: &TableSchema, slice: &Slice) -> String {
    let (start, end) = (shown_bound(table, &slice.start), shown_bound(table, &slice.end));
    if start == end && slice.start.kind == BoundKind::InclStart && slice.end.kind == BoundKind::InclEnd {
        return start.map_or_else(|| "all rows".to_owned(), |values| format!("at {values}"));
    }
    let start = match (start, slice.start.kind) {
        (None, _) => "from the first".to_owned(),
        (Some(values), BoundKind::InclStart) => format!("from {values}"),
        (Some(values), _) => format!("after {values}"),
    };
    let end = match (end, slice.end.kind) {
        (None, _) => "to the last".to_owned(),
        (Some(values), BoundKind::InclEnd) => format!("to {values}"),
        (Some(values), _) => format!("before {values}"),
    };
    format!("{start} {end}, in stored order")
}

fn shown_bound(table: &TableSchema, bound: &Bound) -> Option<String> {
    let values = table.clustering().zip(bound.values.iter());
    let shown: Vec<String> = values
        .map(|(column, value)| match value {
            Some(value) => literal(column, value),
            None => "null".to_owned(),
        })
        .collect();
    match shown.len() {
        0 => None,
        1 => shown.into_iter().next(),
        _ => Some(format!("({})", shown.join(", "))),
    }
}
