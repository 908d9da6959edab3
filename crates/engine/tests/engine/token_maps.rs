//! Token maps in the engine: written with SSTables, made in the background where they are missing or damaged.

use std::path::PathBuf;

use ilion_engine::Finding;
use ilion_env::Env;

use crate::support::{Store, new_store, open, small_options};

fn store_with_data() -> Store {
    let store = new_store(3, small_options());
    for number in 0..200 {
        store.put(&format!("key {number}"), number, "value", 10);
    }
    store.flush();
    store
}

fn maps(store: &Store) -> Vec<PathBuf> {
    let directory = store.directory();
    let entries = store.env.list(&directory).unwrap();
    let maps = entries
        .into_iter()
        .filter(|entry| entry.name.ends_with("Tokens.db"));
    maps.map(|entry| directory.join(entry.name)).collect()
}

#[test]
fn a_look_up_is_answered_by_the_token_map() {
    let store = store_with_data();
    assert_eq!(store.partition("key 7", false).len(), 1);
    assert_eq!(store.partition("no key", false).len(), 0);
    let facts = store.engine.facts();
    assert_eq!(facts.lookups.by_index, 0);
    assert!(facts.lookups.by_token_map >= 1);
    assert!(facts.token_map_bytes > 0);
}

#[test]
fn a_map_that_is_missing_or_damaged_is_made_in_the_background() {
    let mut store = store_with_data();
    let contents = store.contents();
    for round in 0..3 {
        let path = maps(&store).pop().unwrap();
        let whole = store.env.read_all(&path, 1 << 20).unwrap();
        match round {
            0 => store.env.remove_file(&path).unwrap(),
            1 => store.env.corrupt_byte(&path, whole.len() as u64 - 1, 1).unwrap(),
            // Damage that is found only when it is read.
            _ => store.env.corrupt_byte(&path, 40, 1).unwrap(),
        }
        store = store.restart(small_options());
        assert_eq!(store.contents(), contents);
        assert_eq!(store.partition("key 7", false).len(), 1);
        if round == 2 {
            // It looks after what is missing now and then.
            store = store.restart(small_options());
            assert_eq!(store.partition("key 7", false).len(), 1);
            continue;
        }
        store.engine.wait_idle();
        assert_eq!(store.env.read_all(&path, 1 << 20).unwrap(), whole);
        assert!(store.engine.facts().token_map_bytes > 0);
    }
}

#[test]
fn without_token_maps_the_index_answers() {
    let mut options = small_options();
    options.finding = Finding::Summary;
    let store = new_store(3, options);
    store.put("a", 1, "x", 10);
    store.flush();
    assert_eq!(maps(&store), Vec::<PathBuf>::new());
    assert_eq!(store.partition("a", false).len(), 1);
    let facts = store.engine.facts();
    assert_eq!((facts.lookups.by_token_map, facts.token_map_bytes), (0, 0));
    assert!(facts.lookups.by_index > 0);
    // Switched on again, maps are made for what is there.
    let store = store.restart(small_options());
    store.engine.wait_idle();
    assert_eq!(maps(&store).len(), 1);
    assert_eq!(store.partition("a", false).len(), 1);
}

#[test]
fn filters_and_summaries_that_are_gone_or_cut_off_are_done_without_until_the_next_compaction_makes_them() {
    let mut options = small_options();
    options.finding = Finding::Summary;
    for component in ["Filter.db", "Summary.db"] {
        for keeps in [None, Some(0), Some(7), Some(30)] {
            let store = new_store(4, options.clone());
            for number in 0..300 {
                store.put(&format!("key {number}"), number, "value", 10);
            }
            store.flush();
            let contents = store.contents();
            let name = store.files().remove(0).replace("Data.db", component);
            let path = store.directory().join(name);
            match keeps {
                None => store.env.remove_file(&path).unwrap(),
                Some(bytes) => store.env.open_append(&path).unwrap().truncate(bytes).unwrap(),
            }
            let store = store.restart(options.clone());
            assert_eq!(store.contents(), contents, "{component} {keeps:?}");
            for number in [0, 1, 150, 299] {
                let key = format!("key {number}");
                assert_eq!(store.row(&key, number).as_deref(), Some("value"));
            }
            assert_eq!(store.row("no key", 1), None);
            store.engine.compact(store.table().id).unwrap();
            let name = store.files().remove(0).replace("Data.db", component);
            let size = store.env.file_size(&store.directory().join(name)).unwrap();
            assert!(size > 30, "{component} has {size} bytes");
            assert_eq!(store.contents(), contents);
        }
    }
}

#[test]
fn a_start_at_damaged_statistics_names_the_file() {
    let store = store_with_data();
    let name = store.files().remove(0).replace("Data.db", "Statistics.db");
    let path = store.directory().join(&name);
    let size = store.env.file_size(&path).unwrap();
    let env = store.close();
    for at in [40, size / 2, size - 3] {
        env.corrupt_byte(&path, at, 0x10).unwrap();
        let told = open(&env, small_options()).unwrap().engine.set_aside();
        assert!(told.len() == 1 && told[0].reason.contains(&name), "{told:?}");
        env.corrupt_byte(&path, at, 0x10).unwrap();
    }
    assert_eq!(open(&env, small_options()).unwrap().contents().len(), 200);
}
