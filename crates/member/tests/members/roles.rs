//! Roles and permissions: every member has all of them, whoever changed them, and whatever the clocks say.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use ilion_cluster::{FEATURE_LEVEL_MAX, META_TABLET};
use ilion_engine::{Engine, EngineOptions};
use ilion_env::{CrashRule, MemEnv};
use ilion_query::{
    AccessOptions, Authenticator, Authorizer, ClientState, ClusterFacts, Consistency, EngineStore, Error,
    ExecuteOptions, FirstSuperuser, Identity, QueryOptions, QueryProcessor,
};

use crate::world::{Running, World, run, wait};

const TABLES: [&str; 2] = [
    "SELECT role, can_login FROM system_auth.roles",
    "SELECT role, member FROM system_auth.role_members",
];

fn execute(node: &Running, text: &str) -> Result<Vec<Vec<Option<i64>>>, Error> {
    run(&node.processor, text, &[], Consistency::ONE)
}

/// What a member has by itself of two tables.
fn local(node: &Running) -> [Vec<Vec<Option<i64>>>; 2] {
    TABLES.map(|select| {
        let mut rows = run(&node.local, select, &[], Consistency::ONE).unwrap();
        rows.sort();
        rows
    })
}

/// A text of one character as [`run`] shows it.
fn text(character: char) -> Option<i64> {
    Some(i64::from(u32::from(character)))
}

#[test]
fn a_change_of_roles_is_on_all_members_when_it_is_answered_and_the_last_one_counts() {
    let world = World::new(3, 4);
    let members: Vec<_> = (0..3).map(|place| world.at(place).unwrap()).collect();
    let hour = 3_600_000_000;
    members[1].env.step_clock(-hour);
    members[2].env.step_clock(hour);
    let all = |roles: &[[Option<i64>; 2]], owned: &[[Option<i64>; 2]]| {
        for member in &members {
            let found = local(member);
            assert_eq!(found[0], roles);
            assert_eq!(found[1], owned);
        }
    };
    let (a, b) = (text('a'), text('b'));
    execute(
        &members[2],
        "INSERT INTO system_auth.roles (role, can_login) VALUES ('a', true)",
    )
    .unwrap();
    all(&[[a, Some(1)]], &[]);
    // Its clock is two hours behind.
    execute(
        &members[1],
        "UPDATE system_auth.roles SET can_login = false WHERE role = 'a'",
    )
    .unwrap();
    all(&[[a, Some(0)]], &[]);
    let several = "BEGIN BATCH \
        INSERT INTO system_auth.roles (role, can_login, member_of) VALUES ('b', true, {'a'}); \
        INSERT INTO system_auth.role_members (role, member) VALUES ('a', 'b'); \
        APPLY BATCH";
    execute(&members[0], several).unwrap();
    all(&[[a, Some(0)], [b, Some(1)]], &[[a, b]]);
    // A set that is written as a whole replaces the one before, and a deletion in a batch deletes what is older.
    execute(
        &members[1],
        "UPDATE system_auth.roles SET member_of = {'c'} WHERE role = 'b'",
    )
    .unwrap();
    for member in &members {
        let set = run(
            &member.local,
            "SELECT member_of FROM system_auth.roles WHERE role = 'b'",
            &[],
            Consistency::ONE,
        );
        // One element, of one byte.
        assert_eq!(set.unwrap(), [[Some(1 << 40 | 1 << 8 | i64::from(b'c'))]]);
    }
    let several = "BEGIN BATCH \
        DELETE FROM system_auth.roles WHERE role = 'a'; \
        DELETE FROM system_auth.role_members WHERE role = 'a'; \
        APPLY BATCH";
    execute(&members[1], several).unwrap();
    all(&[[b, Some(1)]], &[]);
    execute(&members[0], "TRUNCATE system_auth.roles").unwrap();
    all(&[], &[]);
    execute(
        &members[1],
        "INSERT INTO system_auth.roles (role, can_login) VALUES ('a', true)",
    )
    .unwrap();
    all(&[[a, Some(1)]], &[]);
    for refused in [
        "INSERT INTO system_auth.roles (role, can_login) VALUES ('c', true) IF NOT EXISTS",
        "DELETE FROM system_auth.roles WHERE role = 'a' IF EXISTS",
    ] {
        let refused = execute(&members[0], refused).unwrap_err();
        assert!(
            matches!(&refused, Error::Invalid(reason) if reason.contains("system_auth")),
            "{refused:?}"
        );
    }
    all(&[[a, Some(1)]], &[]);
}

#[test]
fn members_that_join_late_were_away_or_lost_their_power_have_all_roles() {
    let world = World::with_room(2, 3, 4);
    let first = world.at(0).unwrap();
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}",
        "CREATE TABLE ks.t (k bigint PRIMARY KEY)",
        "INSERT INTO system_auth.roles (role, can_login) VALUES ('a', true)",
        "INSERT INTO system_auth.roles (role, can_login) VALUES ('b', true)",
        "DELETE FROM system_auth.roles WHERE role = 'a'",
    ] {
        execute(&first, text).unwrap();
    }
    let expected = [vec![vec![text('b'), Some(1)]], Vec::new()];
    // Nothing was flushed.
    world.crash(1, CrashRule::LoseUnsynced);
    assert_eq!(local(&world.at(1).unwrap()), expected);
    let disk = world.lose(1, CrashRule::LoseUnsynced).unwrap();
    execute(
        &first,
        "INSERT INTO system_auth.roles (role, can_login) VALUES ('c', false)",
    )
    .unwrap();
    let expected = [
        vec![vec![text('b'), Some(1)], vec![text('c'), Some(0)]],
        Vec::new(),
    ];
    world.start_again(1, disk).unwrap();
    assert_eq!(local(&world.at(1).unwrap()), expected);
    // A newcomer reads them in the log, or, once the beginning of the log is gone, in a snapshot.
    let changed = world.logs.end(META_TABLET);
    wait("the meta log is not trimmed", || {
        world.logs.start(META_TABLET) > changed
    });
    world.start(2, MemEnv::new(60));
    for place in 0..3 {
        let member = world.at(place).unwrap();
        assert_eq!(local(&member), expected, "member {place}");
        assert_eq!(member.member.halted(), None);
    }
}

#[test]
fn members_that_make_the_same_role_at_once_make_it_once() {
    const PLACES: [usize; 3] = [0, 1, 2];
    let mut world = World::with_room(0, PLACES.len(), 4);
    world.query_options.access = AccessOptions {
        authenticator: Authenticator::Password,
        authorizer: Authorizer::Cassandra,
        bcrypt_cost: 4,
        ..AccessOptions::default()
    };
    for place in PLACES {
        world.start(place, MemEnv::new(place as u64 + 1));
    }
    let members = PLACES.map(|place| world.at(place).unwrap());
    // As three nodes of a new cluster that start together.
    let at_once = |act: &(dyn Fn(usize) -> bool + Sync)| {
        thread::scope(|scope| {
            let turns = PLACES.map(|place| scope.spawn(move || act(place)));
            turns
                .into_iter()
                .map(|turn| turn.join().unwrap())
                .filter(|is_made| *is_made)
                .count()
        })
    };
    let first = FirstSuperuser {
        role: "root".to_owned(),
        password: "secret".to_owned(),
    };
    let access = |place: usize| members[place].processor.access();
    assert_eq!(
        at_once(&|place| access(place).create_superuser(&first).unwrap().is_some()),
        1
    );
    let logins = PLACES.map(|place| {
        let address = [127, 0, 0, 1].into();
        access(place).log_in("root", "secret", address).unwrap()
    });
    let query = |place: usize, text: &str| {
        let mut client = ClientState {
            identity: Identity::User(logins[place].clone()),
            ..ClientState::default()
        };
        members[place]
            .processor
            .query(&mut client, text, &ExecuteOptions::default())
    };
    for round in 0..6 {
        let create = format!("CREATE ROLE r{round} WITH PASSWORD = 'p' AND LOGIN = true");
        let made = at_once(&|place| match query(place, &create) {
            Ok(_) => true,
            Err(Error::Invalid(reason)) if reason.ends_with("already exists") => false,
            Err(error) => panic!("{error:?}"),
        });
        assert_eq!(made, 1, "{create}");
    }
}

#[test]
fn roles_wait_until_all_members_are_upgraded() {
    let mut world = World::with_room(0, 2, 4);
    world.understands = 5;
    for place in 0..2 {
        world.start(place, MemEnv::new(place as u64 + 1));
    }
    let insert = "INSERT INTO system_auth.roles (role, can_login) VALUES ('a', true)";
    world.understands = FEATURE_LEVEL_MAX;
    for upgraded in 0..2 {
        let refused = execute(&world.at(0).unwrap(), insert).unwrap_err();
        assert!(refused.to_string().contains("upgrade them first"), "{refused}");
        let disk = world.stop(upgraded);
        world.start_again(upgraded, disk).unwrap();
    }
    let first = world.at(0).unwrap();
    wait("roles are not accepted", || execute(&first, insert).is_ok());
    assert_eq!(local(&world.at(1).unwrap()), local(&first));
}

#[test]
fn a_directory_with_roles_of_a_single_node_does_not_join() {
    let world = World::with_room(0, 1, 4);
    let env = MemEnv::new(1);
    let engine = Engine::open(env.shared(), EngineOptions::below(Path::new("/ilion"))).unwrap();
    let store = EngineStore::new(Arc::new(engine), ClusterFacts::default());
    let alone = QueryProcessor::new(Arc::new(store), QueryOptions::default());
    let insert = "INSERT INTO system_auth.roles (role, can_login) VALUES ('a', true)";
    run(&alone, insert, &[], Consistency::ONE).unwrap();
    drop(alone);
    let refused = world
        .start_as(0, env.crash(CrashRule::KeepAll), 100, None)
        .unwrap_err();
    assert!(refused.to_string().contains("it has roles"), "{refused}");
}
