//! `token`: the token of a partition key.

use bytes::Bytes;
use ilion_types::encode_composite;

use super::ScalarFunction;
use super::lookup::Lookup;
use crate::Error;

/// `token` of the partition key of the statement's table.
pub(super) fn make(lookup: &Lookup<'_>) -> Result<ScalarFunction, Error> {
    let table = lookup
        .table
        .and_then(|(keyspace, table)| lookup.context.schema.table(keyspace, table));
    let table =
        table.ok_or_else(|| Error::invalid("No receiver table has been specified for function token"))?;
    let partitioner = table.partitioner(lookup.context.store.partitioner());
    let types: Vec<_> = table.partition_key().map(|column| column.ty.clone()).collect();
    let result = partitioner.token_type();
    Ok(ScalarFunction::new(
        "token",
        types,
        result,
        move |arguments, _| {
            let Some(parts) = arguments
                .iter()
                .map(Option::as_ref)
                .collect::<Option<Vec<&Bytes>>>()
            else {
                return Ok(None);
            };
            let token = match parts.as_slice() {
                [only] => partitioner.token(only),
                parts => {
                    let mut key = Vec::new();
                    encode_composite(parts.iter().map(|part| part.as_ref()), &mut key)?;
                    partitioner.token(&key)
                }
            };
            Ok(Some(token.to_bytes().into()))
        },
    ))
}
