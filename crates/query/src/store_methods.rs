//! [`store_methods`](crate::store_methods): makes methods of a [`Store`](crate::Store) that call another store, or that refuse.

/// The types in the signatures of the methods.
#[doc(hidden)]
pub mod types {
    pub use std::sync::Arc;

    pub use ilion_engine::{CounterCache, OpenIndex, ReadSurvey};
    pub use ilion_index::{Candidates, Estimate, IndexClasses, Predicate, Ranked};
    pub use ilion_rows::counter::CounterId;
    pub use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Mutation};
    pub use ilion_schema::{Schema, TableId, TableSchema};
    pub use ilion_types::Partitioner;
    pub use uuid::Uuid;

    pub use crate::{Awaited, ClusterFacts, PartitionGuard, StoreError};
}

/// Makes methods in an `impl Store for ...`. `forward [inner]: schema cluster` makes methods that call those of `self.inner`; in place
/// of `inner` any path or call may stand. `refuse [error()]: truncate` makes a method that returns the error.
#[macro_export]
macro_rules! store_methods {
    ($how:ident $with:tt: $($method:ident)+) => {
        $($crate::store_methods!(@$method $how $with);)+
    };
    (@make forward [$($to:tt)+] fn $name:ident($($argument:ident: $ty:ty),*) -> $result:ty) => {
        fn $name(&self, $($argument: $ty),*) -> $result {
            self.$($to)+.$name($($argument),*)
        }
    };
    (@make refuse [$error:expr] fn $name:ident($($argument:ident: $ty:ty),*) -> $result:ty) => {
        fn $name(&self, $(_: $ty),*) -> $result {
            Err($error)
        }
    };
    (@schema $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn schema() -> $crate::store_types::Arc<$crate::store_types::Schema>);
    };
    (@apply $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn apply(mutations: Vec<$crate::store_types::Mutation>)
            -> Result<Option<$crate::store_types::Awaited>, $crate::store_types::StoreError>);
    };
    (@apply_logged $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn apply_logged(mutations: Vec<$crate::store_types::Mutation>)
            -> Result<Option<$crate::store_types::Awaited>, $crate::store_types::StoreError>);
    };
    (@apply_decided $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn apply_decided(mutations: Vec<$crate::store_types::Mutation>)
            -> Result<Option<$crate::store_types::Awaited>, $crate::store_types::StoreError>);
    };
    (@read_partition $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn read_partition(
            table: &$crate::store_types::Arc<$crate::store_types::TableSchema>,
            key: &$crate::store_types::DecoratedKey,
            filter: &$crate::store_types::ClusteringFilter
        ) -> Result<Box<dyn $crate::store_types::Cursor>, $crate::store_types::StoreError>);
    };
    (@read_range $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn read_range(
            table: &$crate::store_types::Arc<$crate::store_types::TableSchema>,
            range: &$crate::store_types::KeyRange,
            filter: &$crate::store_types::ClusteringFilter
        ) -> Result<Box<dyn $crate::store_types::Cursor>, $crate::store_types::StoreError>);
    };
    (@truncate $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn truncate(table: $crate::store_types::TableId)
            -> Result<(), $crate::store_types::StoreError>);
    };
    (@is_clearable $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn is_clearable(table: $crate::store_types::TableId) -> bool);
    };
    (@is_settable $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn is_settable(table: $crate::store_types::TableId) -> bool);
    };
    (@set_virtual $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn set_virtual(mutation: &$crate::store_types::Mutation)
            -> Result<(), $crate::store_types::StoreError>);
    };
    (@lock_partitions $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn lock_partitions(
            partitions: &[($crate::store_types::TableId, $crate::store_types::DecoratedKey)]
        ) -> Box<dyn $crate::store_types::PartitionGuard + '_>);
    };
    (@partitioner $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn partitioner() -> $crate::store_types::Partitioner);
    };
    (@now_micros $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn now_micros() -> i64);
    };
    (@unique_micros $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn unique_micros() -> i64);
    };
    (@monotonic_nanos $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn monotonic_nanos() -> u64);
    };
    (@time_uuid $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn time_uuid() -> $crate::store_types::Uuid);
    };
    (@random_uuid $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn random_uuid() -> $crate::store_types::Uuid);
    };
    (@counter_id $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn counter_id() -> $crate::store_types::CounterId);
    };
    (@counter_cache $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn counter_cache() -> Option<&$crate::store_types::CounterCache>);
    };
    (@survey_partition $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn survey_partition(
            table: &$crate::store_types::Arc<$crate::store_types::TableSchema>,
            key: &$crate::store_types::DecoratedKey,
            filter: &$crate::store_types::ClusteringFilter
        ) -> Option<$crate::store_types::ReadSurvey>);
    };
    (@survey_range $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn survey_range(
            table: &$crate::store_types::Arc<$crate::store_types::TableSchema>,
            range: &$crate::store_types::KeyRange
        ) -> Option<$crate::store_types::ReadSurvey>);
    };
    (@cluster $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn cluster(keyspace: Option<&str>) -> $crate::store_types::ClusterFacts);
    };
    (@index_classes $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn index_classes() -> $crate::store_types::IndexClasses);
    };
    (@indexes_of $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn indexes_of(table: $crate::store_types::TableId)
            -> Vec<$crate::store_types::OpenIndex>);
    };
    (@index_search $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn index_search(
            table: &$crate::store_types::Arc<$crate::store_types::TableSchema>,
            index: &str,
            predicate: &$crate::store_types::Predicate,
            range: &$crate::store_types::KeyRange
        ) -> Result<Box<dyn $crate::store_types::Candidates>, $crate::store_types::StoreError>);
    };
    (@index_estimate $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn index_estimate(
            table: &$crate::store_types::Arc<$crate::store_types::TableSchema>,
            index: &str,
            predicate: &$crate::store_types::Predicate
        ) -> Result<$crate::store_types::Estimate, $crate::store_types::StoreError>);
    };
    (@index_nearest $($how:tt)+) => {
        $crate::store_methods!(@make $($how)+ fn index_nearest(
            table: &$crate::store_types::Arc<$crate::store_types::TableSchema>,
            index: &str,
            vector: &[f32]
        ) -> Result<Box<dyn $crate::store_types::Ranked>, $crate::store_types::StoreError>);
    };
}
