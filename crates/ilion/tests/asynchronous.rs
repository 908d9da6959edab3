//! The database in tasks of tokio.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use ilion::{AsyncDatabase, BatchKind, Database, Error, StatementError};

/// More than two pages.
const SONGS: i32 = 12_000;

async fn songs(directory: &tempfile::TempDir) -> AsyncDatabase {
    let database = AsyncDatabase::open(directory.path()).await.unwrap();
    for statement in [
        "CREATE KEYSPACE music WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "USE music",
        "CREATE TABLE songs (artist text, id int, title text, PRIMARY KEY (artist, id))",
    ] {
        database.execute(statement, ()).await.unwrap();
    }
    database
}

#[tokio::test]
async fn tasks_write_and_read_at_the_same_time_and_what_they_wrote_stays() {
    let directory = tempfile::tempdir().unwrap();
    let database = songs(&directory).await;
    let insert = database
        .prepare("INSERT INTO songs (artist, id, title) VALUES (?, ?, ?)")
        .await
        .unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for id in 0..20 {
        let insert = insert.clone();
        tasks.spawn(async move {
            insert
                .execute(("ZZ Top", id, format!("song {id}")))
                .await
                .map(drop)
        });
    }
    for done in tasks.join_all().await {
        done.unwrap();
    }
    let mut batch = database.database().batch(BatchKind::Logged);
    batch.add(insert.statement(), ("ZZ Top", 20, "Tush")).unwrap();
    database.execute_batch(batch).await.unwrap();
    let count = "SELECT count(*) FROM songs WHERE artist = ?";
    let row = database.query_one(count, ("ZZ Top",)).await.unwrap();
    assert_eq!(row.get::<i64>(0).unwrap(), 21);
    drop((insert, row));
    database.close().await.unwrap();
    // The directory is free again.
    let reopened = Database::open(directory.path()).unwrap();
    let title = reopened.query_one(
        "SELECT title FROM music.songs WHERE artist = ? AND id = 20",
        ("ZZ Top",),
    );
    assert_eq!(title.unwrap().get::<String>(0).unwrap(), "Tush");
}

#[tokio::test]
async fn no_row_is_lost_when_the_wait_for_one_is_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let database = songs(&directory).await;
    let mut batch = database.database().batch(BatchKind::Unlogged);
    let insert = database
        .prepare("INSERT INTO songs (artist, id) VALUES ('a', ?)")
        .await
        .unwrap();
    for id in 0..SONGS {
        batch.add(insert.statement(), (id,)).unwrap();
        if batch.len() == 1000 {
            let full = std::mem::replace(&mut batch, database.database().batch(BatchKind::Unlogged));
            database.execute_batch(full).await.unwrap();
        }
    }
    let mut rows = database.execute("SELECT id FROM songs", ()).await.unwrap();
    let mut read = Vec::new();
    loop {
        // Polled once: at the end of a page it is not ready, and is dropped.
        let polled = pin!(rows.next()).poll(&mut Context::from_waker(Waker::noop()));
        let row = match polled {
            Poll::Ready(row) => row,
            Poll::Pending => rows.next().await,
        };
        match row {
            Some(row) => read.push(row.unwrap().get::<i32>(0).unwrap()),
            None => break,
        }
    }
    assert_eq!(read, (0..SONGS).collect::<Vec<_>>());
    let all = database.execute("SELECT id FROM songs", ()).await.unwrap();
    assert_eq!(all.read_all::<(i32,)>().await.unwrap().len(), read.len());
}

#[tokio::test]
async fn errors_are_those_of_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let database = songs(&directory).await;
    let failed = database.execute("SELECT genre FROM songs", ()).await;
    assert!(matches!(
        failed,
        Err(Error::Statement(StatementError::Invalid(_)))
    ));
    let one = database
        .query_one("SELECT id FROM songs WHERE artist = ?", ("nobody",))
        .await;
    assert!(matches!(one, Err(Error::NoRow)));
    let none = database
        .query_opt("SELECT id FROM songs WHERE artist = ?", ("nobody",))
        .await;
    assert!(none.unwrap().is_none());
}

#[test]
fn a_call_without_a_runtime_is_refused() {
    let mut open = pin!(AsyncDatabase::open("never-made"));
    let polled = open.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Err(Error::Runtime(_)))));
}
