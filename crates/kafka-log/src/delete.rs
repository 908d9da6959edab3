//! Deleting the start of the partition that a log is kept in.

use std::time::Duration;

use ilion_commitlog::TailError;
use ilion_kafka_client::messages::{DeleteRecords, DeleteRecordsPartition, DeleteRecordsTopic};
use ilion_kafka_client::{Cluster, Error, codes};
use tokio::time::sleep;

use crate::topics::Topics;

/// Attempts, and pauses between them: a leader may have moved.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Deletes what the partition of a log has below an offset.
pub(crate) async fn delete_below(
    cluster: &Cluster,
    topics: &Topics,
    log: u32,
    offset: u64,
) -> Result<(), TailError> {
    let partition = topics.sharing.partition_of(log);
    let place = partition.and_then(|partition| topics.place(partition));
    let (Some((topic, partition)), Ok(offset)) = (place, i64::try_from(offset)) else {
        return Err(TailError::Refused(format!(
            "there is no log {log} with an offset {offset}"
        )));
    };
    let mut trouble = String::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            cluster.renew();
            sleep(PAUSE).await;
        }
        match try_once(cluster, topic, partition, offset).await {
            Ok(codes::NONE) => return Ok(()),
            Ok(codes::OFFSET_OUT_OF_RANGE) => {
                return Err(TailError::Refused(format!(
                    "log {log} has no offset {offset}: nothing was deleted"
                )));
            }
            Ok(codes::TOPIC_AUTHORIZATION_FAILED) => {
                return Err(TailError::Refused(format!(
                    "the login of Ilion needs Delete on topic {topic}"
                )));
            }
            Ok(code) => trouble = format!("topic {topic}, partition {partition}: {}", codes::name(code)),
            Err(error) if error.may_pass() => trouble = error.to_string(),
            Err(error) => return Err(TailError::Refused(error.to_string())),
        }
    }
    Err(TailError::Unreachable(trouble))
}

async fn try_once(cluster: &Cluster, topic: &str, partition: i32, offset: i64) -> Result<i16, Error> {
    let Some(leader) = cluster.view().leader(topic, partition) else {
        return Ok(codes::LEADER_NOT_AVAILABLE);
    };
    let limit = cluster.options().request_timeout;
    let request = DeleteRecords {
        topics: vec![DeleteRecordsTopic {
            name: topic.to_owned(),
            partitions: vec![DeleteRecordsPartition {
                index: partition,
                offset,
            }],
        }],
        timeout_millis: i32::try_from(limit.as_millis()).unwrap_or(i32::MAX),
    };
    let mut connection = cluster.connect_to(leader).await?;
    let answer = connection.ask(&request, 2 * limit).await?;
    let mut partitions = answer.topics.into_iter().flat_map(|topic| topic.partitions);
    Ok(partitions
        .next()
        .map_or(codes::UNKNOWN_TOPIC_OR_PARTITION, |partition| partition.error))
}
