//! Histories of registers, hand-written (`testdata`), random ones against every order tried in turn, and good ones with one answer changed.
//!
//! ```text
//! check [limit=CONFIGURATIONS]
//! CLIENT write VALUE @CALLED-RETURNED       RETURNED is ? if the outcome is unknown
//! CLIENT read VALUE|none @...
//! CLIENT cas VALUE|none VALUE @...          it did set
//! CLIENT cas VALUE|none VALUE found VALUE|none @...
//! ```

#![expect(clippy::unwrap_used, reason = "a mistake in a test file is to stop the test")]

use ilion_env::Seeded;
use ilion_histories::{Action, Operation, Outcome, Value, Verdict, check_registers};

const LIMIT: usize = 100_000;

#[test]
fn verdicts_are_those_of_the_files() {
    datadriven::walk("testdata", |file| {
        file.run(|case| {
            assert_eq!(case.directive, "check");
            let limit = case
                .args
                .get("limit")
                .map_or(LIMIT, |limit| limit[0].parse().unwrap());
            let history: Vec<Operation> = case.input.lines().map(parse).collect();
            format!("{}\n", check_registers(&history, limit)).replace("\n\n", "\n")
        });
    });
}

fn parse(line: &str) -> Operation {
    let (words, times) = line.split_once(" @").unwrap();
    let words: Vec<&str> = words.split(' ').collect();
    let number = |word: &str| word.parse::<u64>().unwrap();
    let value = |word: &str| (word != "none").then(|| number(word));
    let (action, found) = match words[1..] {
        ["write", new] => (Action::Write(number(new)), None),
        ["read", found] => (Action::Read, Some(value(found))),
        ["cas", expected, new] => (Action::CompareAndSet(value(expected), number(new)), None),
        ["cas", expected, new, "found", found] => (
            Action::CompareAndSet(value(expected), number(new)),
            Some(value(found)),
        ),
        _ => panic!("{line}"),
    };
    let (called, returned) = times.split_once('-').unwrap();
    let outcome = match returned {
        "?" => Outcome::Unknown,
        returned => Outcome::Done {
            returned: number(returned),
            found,
        },
    };
    Operation {
        client: number(words[0]) as u32,
        key: 1,
        called: number(called),
        action,
        outcome,
    }
}

/// Whether an order explains the answers: all orders are tried.
fn has_order(rest: &[Operation], value: Value) -> bool {
    let returned = |operation: &Operation| match operation.outcome {
        Outcome::Done { returned, .. } => returned,
        Outcome::Unknown => u64::MAX,
    };
    if rest.iter().all(|operation| operation.outcome == Outcome::Unknown) {
        return true;
    }
    (0..rest.len()).any(|index| {
        let mut others = rest.to_vec();
        let first = others.remove(index);
        let may_be_first = others.iter().all(|other| returned(other) >= first.called);
        may_be_first && after(&first, value).is_some_and(|value| has_order(&others, value))
            // What is unknown may never happen.
            || first.outcome == Outcome::Unknown && has_order(&others, value)
    })
}

fn after(operation: &Operation, value: Value) -> Option<Value> {
    let found = match operation.outcome {
        Outcome::Done { found, .. } => found,
        Outcome::Unknown => None,
    };
    match operation.action {
        Action::Read => (found.is_none() || found == Some(value)).then_some(value),
        Action::Write(new) => Some(Some(new)),
        Action::CompareAndSet(expected, new) => match found {
            None => (value == expected).then_some(Some(new)),
            Some(found) => (found == value && value != expected).then_some(value),
        },
    }
}

fn random_operation(random: &mut Seeded, client: u32) -> Operation {
    let called = random.below(12);
    let value = |random: &mut Seeded| random.below(3).checked_sub(1);
    let (action, found) = match random.below(4) {
        0 => (Action::Write(random.below(2)), None),
        1 | 2 => (Action::Read, Some(value(random))),
        _ => {
            let found = if random.one_in(2) {
                Some(value(random))
            } else {
                None
            };
            (Action::CompareAndSet(value(random), random.below(2)), found)
        }
    };
    let outcome = if random.one_in(5) {
        Outcome::Unknown
    } else {
        let returned = called + random.below(6);
        Outcome::Done { returned, found }
    };
    Operation {
        client,
        key: 1,
        called,
        action,
        outcome,
    }
}

#[test]
fn verdicts_are_those_of_trying_every_order() {
    let mut counts = [0, 0];
    for seed in 0..2000 {
        println!("seed {seed}");
        let mut random = Seeded::new(seed);
        let history: Vec<Operation> = (0..1 + random.below(6) as u32)
            .map(|client| random_operation(&mut random, client))
            .collect();
        let expected = has_order(&history, None);
        counts[usize::from(expected)] += 1;
        match check_registers(&history, LIMIT) {
            Verdict::Linearizable => assert!(expected, "{history:?}"),
            Verdict::Wrong(part) => {
                assert!(!expected, "{history:?}");
                assert!(
                    !has_order(&part, None),
                    "the part that is shown is wrong by itself: {part:?}"
                );
            }
            Verdict::Undecided { .. } => panic!("{history:?}"),
        }
    }
    assert!(counts.iter().all(|count| *count > 200), "{counts:?}");
}

/// What clients of a register see that does one thing at a time, somewhere between call and return.
fn good_history(random: &mut Seeded, length: u64) -> Vec<Operation> {
    let mut points: Vec<u64> = (0..length).map(|_| 100 + random.below(length * 10)).collect();
    points.sort_unstable();
    let (mut value, mut fresh) = (None, 0);
    let mut history = Vec::new();
    for point in points {
        fresh += 1;
        let action = match random.below(3) {
            0 => Action::Write(fresh),
            1 => Action::Read,
            _ => Action::CompareAndSet(if random.one_in(2) { value } else { Some(fresh / 2) }, fresh),
        };
        let is_unknown = random.one_in(20) && action != Action::Read;
        let happens = !is_unknown || random.one_in(2);
        let found = match action {
            Action::Read => Some(value),
            Action::CompareAndSet(expected, _) if expected != value => Some(value),
            Action::CompareAndSet(..) | Action::Write(_) => None,
        };
        if let (Action::Write(new) | Action::CompareAndSet(_, new), None, true) = (action, found, happens) {
            value = Some(new);
        }
        let returned = point + random.below(40);
        let outcome = if is_unknown {
            Outcome::Unknown
        } else {
            Outcome::Done { returned, found }
        };
        let called = point - random.below(40);
        let (client, key) = (random.below(5) as u32, 1);
        history.push(Operation {
            client,
            key,
            called,
            action,
            outcome,
        });
    }
    history
}

#[test]
fn long_good_histories_pass_and_a_changed_answer_is_found() {
    let (mut changed, mut found_wrong, mut longest) = (0, 0, 0);
    for seed in 0..40 {
        println!("seed {seed}");
        let mut random = Seeded::new(seed);
        let history = good_history(&mut random, 40);
        assert_eq!(check_registers(&history, LIMIT), Verdict::Linearizable);
        let mut bad = history.clone();
        let reads: Vec<usize> = (0..bad.len())
            .filter(|index| bad[*index].action == Action::Read)
            .collect();
        let read = &mut bad[reads[random.below(reads.len() as u64) as usize]];
        let Outcome::Done {
            returned,
            found: Some(found),
        } = read.outcome
        else {
            panic!("a read finds a value");
        };
        // Far in the past, or never written.
        let other = if random.one_in(2) { None } else { Some(999) };
        read.outcome = Outcome::Done {
            returned,
            found: Some(other),
        };
        changed += u32::from(found != other);
        if let Verdict::Wrong(part) = check_registers(&bad, LIMIT) {
            found_wrong += 1;
            longest = longest.max(part.len());
        }
    }
    println!("{found_wrong} of {changed} are wrong; the longest part shown has {longest} operations");
    assert!(found_wrong * 10 > changed * 8, "{found_wrong} of {changed}");
    assert!(longest <= 20, "{longest}: half of the history at most is shown");
}
