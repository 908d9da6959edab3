//! An upgrade, node by node: what a newer version does is used once all members have it.

use ilion_cluster::FEATURE_LEVEL_MAX;
use ilion_env::MemEnv;
use ilion_query::{Consistency, Error};

use crate::world::{World, release_of, run, wait};

const PLACES: [usize; 3] = [0, 1, 2];

fn execute(world: &World, place: usize, text: &str) -> Result<Vec<Vec<Option<i64>>>, Error> {
    run(
        &world.at(place).unwrap().processor,
        text,
        &[],
        Consistency::QUORUM,
    )
}

/// The releases of all members, as one of them shows them.
fn releases(world: &World, place: usize) -> Vec<Option<String>> {
    let view = world.at(place).unwrap().member.view().unwrap();
    view.members.into_iter().map(|member| member.release).collect()
}

#[test]
fn a_cluster_that_is_upgraded_node_by_node_uses_nothing_new_before_the_last_one() {
    let mut world = World::with_room(0, PLACES.len(), 8);
    world.understands = 1;
    for place in PLACES {
        world.start(place, MemEnv::new(place as u64 + 1));
    }
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        "CREATE TABLE ks.t (k bigint PRIMARY KEY, n bigint)",
        "CREATE FUNCTION ks.twice(n bigint) RETURNS NULL ON NULL INPUT RETURNS bigint LANGUAGE lua AS 'return n * 2'",
    ] {
        execute(&world, 0, text).unwrap();
    }
    let calling = "INSERT INTO ks.t (k, n) VALUES (10, ks.twice(3)) IF NOT EXISTS";
    world.understands = FEATURE_LEVEL_MAX;
    for upgraded in PLACES {
        for place in PLACES {
            let refused = execute(&world, place, calling);
            let Err(Error::Invalid(reason)) = &refused else {
                panic!("node {place}, {upgraded} are upgraded: {refused:?}");
            };
            assert!(reason.contains("feature level 1"), "{reason}");
            assert_eq!(releases(&world, place), [None, None, None]);
        }
        // Everything else goes on.
        let text = format!("INSERT INTO ks.t (k, n) VALUES ({upgraded}, 1) IF NOT EXISTS");
        let applied = execute(&world, (upgraded + 1) % PLACES.len(), &text).unwrap();
        assert_eq!(applied, [[Some(1)]]);
        let disk = world.stop(upgraded);
        world.start_again(upgraded, disk).unwrap();
    }
    let all: Vec<Option<String>> = PLACES.map(|place| Some(release_of(place))).into();
    for place in PLACES {
        wait("the members do not tell their releases", || {
            releases(&world, place) == all
        });
    }
    assert_eq!(execute(&world, 1, calling).unwrap(), [[Some(1)]]);
    let select = "SELECT n FROM ks.t WHERE k = 10";
    for place in PLACES {
        let node = world.at(place).unwrap();
        wait("a replica does not execute the function", || {
            run(&node.local, select, &[], Consistency::ONE).unwrap() == [[Some(6)]]
        });
    }
    // A member that starts again knows it all.
    let disk = world.stop(2);
    world.start_again(2, disk).unwrap();
    assert_eq!(releases(&world, 2), all);
}
