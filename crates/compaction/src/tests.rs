//! `testdata/*.txt`: pictures in, choices out. `REWRITE=1 cargo test` writes the answers.
//!
//! ```text
//! choose class=UnifiedCompactionStrategy scaling_parameters=T4   what is compacted next
//! settle ...                                                     what is left when nothing is due any more
//! burst files=40 size=10 every=3 ...                             flushes, with a compaction for every third: most files a key was in
//! major, pending, debt, within free=100 ...
//! ```
//!
//! Beside the options of the strategy: `gc` (tombstones before this second may go), `memtable` (oldest write in memory), `flush` (MiB).

use std::collections::{BTreeMap, HashMap};

use crate::picture::Picture;
use crate::{Choice, MajorOutput, Memory, Output, Situation, Strategy, deepest};

type Arguments = HashMap<String, Vec<String>>;

#[test]
fn strategies_choose_what_the_pictures_show() {
    datadriven::walk("testdata", |file| {
        file.run(|case| {
            let strategy = Strategy::of_options(&options(&case.args));
            let picture = Picture::parse(&case.input);
            let situation = adjust(picture.situation(), &case.args);
            let mut memory = Memory::default();
            match case.directive.as_str() {
                "choose" => print(strategy.choose(&situation, &mut memory).as_ref()),
                "pending" => format!("{}\n", strategy.pending(&situation, &memory)),
                "debt" => format!("{}\n", strategy.debt(&situation, &memory)),
                "major" => major(&strategy, &situation, MajorOutput::AsUsual),
                "split" => major(&strategy, &situation, MajorOutput::Split),
                "within" => within(&strategy, &situation, number(&case.args, "free").unwrap()),
                "settle" => settle(&strategy, picture, &case.args),
                "burst" => burst(&strategy, &case.args),
                other => panic!("unknown directive {other}"),
            }
        });
    });
}

fn options(args: &Arguments) -> BTreeMap<String, String> {
    args.iter()
        .map(|(name, values)| (name.clone(), values.join(",")))
        .collect()
}

fn number(args: &Arguments, name: &str) -> Option<u64> {
    args.get(name)?.first()?.parse().ok()
}

fn adjust(situation: Situation, args: &Arguments) -> Situation {
    Situation {
        gc_before_secs: number(args, "gc").map_or(0, |secs| secs as u32),
        memtable_min_timestamp: number(args, "memtable").map_or(i64::MAX, |secs| secs as i64 * 1_000_000),
        flush_bytes: number(args, "flush").unwrap_or(10) << 20,
        ..situation
    }
}

fn print(choice: Option<&Choice>) -> String {
    let Some(choice) = choice else {
        return "nothing\n".to_owned();
    };
    let names = |paths: &[std::path::PathBuf]| {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        names.join(" ")
    };
    let mut parts = Vec::new();
    if !choice.expired.is_empty() {
        parts.push(format!("drop {}", names(&choice.expired)));
    }
    if !choice.inputs.is_empty() {
        let cut = match choice.output {
            Output::Whole => String::new(),
            Output::UpTo { bytes } => format!(" up to {}M", bytes >> 20),
            Output::Shards(shards) => format!(" into {shards} shards"),
            Output::Halves => " into halves".to_owned(),
        };
        parts.push(format!("merge {}{cut}", names(&choice.inputs)));
    }
    if choice.level > 0 {
        parts.push(format!("level {}", choice.level));
    }
    parts.join(", ") + "\n"
}

fn major(strategy: &Strategy, situation: &Situation, output: MajorOutput) -> String {
    let choices = strategy.major(situation, output);
    choices.iter().map(|choice| print(Some(choice))).collect()
}

fn within(strategy: &Strategy, situation: &Situation, free_mebibytes: u64) -> String {
    let choice = strategy.choose(situation, &mut Memory::default()).unwrap();
    print(strategy.within(situation, &choice, free_mebibytes << 20).as_ref())
}

fn settle(strategy: &Strategy, mut picture: Picture, args: &Arguments) -> String {
    let mut memory = Memory::default();
    for _ in 0..1000 {
        let situation = adjust(picture.situation(), args);
        match strategy.choose(&situation, &mut memory) {
            Some(choice) => picture.apply(&choice),
            None => return picture.print(),
        }
    }
    panic!("compactions without end:\n{}", picture.print());
}

fn burst(strategy: &Strategy, args: &Arguments) -> String {
    let (files, size) = (number(args, "files").unwrap(), number(args, "size").unwrap());
    let every = number(args, "every").unwrap_or(1);
    let mut picture = Picture::parse("");
    let mut memory = Memory::default();
    let (mut most, mut written) = (0, 0);
    for flush in 0..files {
        let line = format!("f{flush} [################] {size}M t={flush}");
        picture.candidates.extend(Picture::parse(&line).candidates);
        most = most.max(deepest(&picture.candidates));
        if flush % every == 0
            && let Some(choice) = strategy.choose(&adjust(picture.situation(), args), &mut memory)
        {
            let inputs = picture
                .candidates
                .iter()
                .filter(|file| choice.inputs.contains(&file.id));
            written += inputs.map(|file| file.size_bytes >> 20).sum::<u64>();
            picture.apply(&choice);
        }
    }
    format!(
        "at most {most} files for a key, {}M written for {}M\n",
        written,
        files * size
    )
}
