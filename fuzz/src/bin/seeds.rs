//! Writes inputs to start from into `fuzz/corpus/<target>`: random data, and what the tests of the crates have.

use std::io::Result;
use std::path::Path;

use ilion_internode::{Hello, Identity, NEWEST, OLDEST, Reply};
use ilion_rows::encode_mutation;
use ilion_rows::notation::print_mutation;
use ilion_rows::random::{Dice, random_mutation, random_table};
use ilion_types::hex;
use uuid::Uuid;

fn main() -> Result<()> {
    mutations()?;
    statements()?;
    frames("requests.txt", 0)?;
    frames("responses.txt", 1)?;
    values()?;
    segments()?;
    cluster()?;
    nodes()?;
    sstables()
}

fn write(target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&dir)?;
    std::fs::write(dir.join(format!("seed-{name}")), bytes)
}

fn testdata(file: &str) -> Result<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    std::fs::read_to_string(crates.join(file))
}

/// The inputs of a data-driven file: the lines between a directive and its answer.
fn inputs(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.split("\n\n").map(|case| {
        let lines = case.lines().filter(|line| !line.starts_with('#'));
        lines.skip(1).take_while(|line| *line != "----").collect()
    })
}

/// Records of a meta log, and the states after them, without their checksums.
fn cluster() -> Result<()> {
    let mut state = None;
    for (number, entry) in (1..).zip(ilion_fuzz::cluster::entries()) {
        let (next, _) = ilion_cluster::apply(state.as_ref(), &entry).map_err(std::io::Error::other)?;
        for (choice, bytes) in [(0, entry.record.encode()), (1, next.encode())] {
            let content = &bytes[..bytes.len() - 4];
            write(
                "cluster",
                &format!("{choice}-{number}"),
                &[&[choice], content].concat(),
            )?;
        }
        state = Some(next);
    }
    Ok(())
}

/// Greetings without their checksums, and a message of each kind.
fn nodes() -> Result<()> {
    let identity = Identity {
        cluster: Uuid::from_u128(7),
        node: 1,
        session: Uuid::from_u128(8),
        host: Uuid::from_u128(9),
    };
    let hello = Hello {
        oldest: OLDEST,
        newest: NEWEST,
        identity,
        wanted: 2,
    };
    let welcome = Reply::Welcome {
        version: NEWEST,
        node: 2,
        session: identity.session,
        host: identity.host,
    };
    let refused = Reply::Refused("it is full".to_owned());
    let greetings = [(0, hello.encode()), (1, welcome.encode()), (1, refused.encode())];
    for (number, (choice, bytes)) in greetings.iter().enumerate() {
        let content = &bytes[..bytes.len() - 4];
        write(
            "nodes",
            &format!("greeting-{number}"),
            &[&[*choice], content].concat(),
        )?;
    }
    for kind in 0..9 {
        let message = [&[2, kind, 3][..], &[1; 13]].concat();
        write("nodes", &format!("message-{kind}"), &message)?;
    }
    Ok(())
}

fn mutations() -> Result<()> {
    for seed in 0..=u8::MAX {
        let mut dice = Dice::new(u64::from(seed));
        let table = random_table(&mut dice);
        let mutation = random_mutation(&table, &mut dice);
        let mut record = vec![seed];
        encode_mutation(&mutation, &mut record);
        write("mutation_codec", &seed.to_string(), &record)?;
        let mut text = vec![seed];
        text.extend_from_slice(print_mutation(&mutation).as_bytes());
        write("notation", &seed.to_string(), &text)?;
    }
    Ok(())
}

fn statements() -> Result<()> {
    for file in ["data", "definition", "lexical", "role", "select", "describe"] {
        let text = testdata(&format!("cql/testdata/{file}.txt"))?;
        for (number, line) in inputs(&text).flatten().enumerate() {
            write("cql", &format!("{file}-{number}"), line.as_bytes())?;
        }
    }
    Ok(())
}

fn frames(file: &str, role: u8) -> Result<()> {
    let text = testdata(&format!("protocol/testdata/{file}"))?;
    for (number, lines) in inputs(&text).enumerate() {
        let Some(bytes) = hex::parse(&lines.concat()).filter(|bytes| !bytes.is_empty()) else {
            continue;
        };
        let envelope = [&[role, 0], &bytes[..]].concat();
        write("frame", &format!("{role}-{number}"), &envelope)?;
        if let Ok(size @ ..0x80) = u8::try_from(bytes.len()) {
            let segment = [&[role | 0x18, 0, size | 0x80], &bytes[..]].concat();
            write("frame", &format!("{role}-segment-{number}"), &segment)?;
        }
    }
    Ok(())
}

fn values() -> Result<()> {
    let text = testdata("types/testdata/values.txt")?;
    for (number, line) in inputs(&text).flatten().enumerate() {
        let Some((ty, digits)) = line.rsplit_once(':') else {
            continue;
        };
        let (Ok(size @ ..0x80), Some(bytes)) = (u8::try_from(ty.len()), hex::parse(digits.trim())) else {
            continue;
        };
        let input = [&[size], ty.as_bytes(), &bytes].concat();
        write("types", &number.to_string(), &input)?;
    }
    Ok(())
}

fn segments() -> Result<()> {
    let pieces: [&[u8]; 5] = [
        &[0, 0, 10, 1, 20, 2, 30, 3, 0],
        &[1, 8, 10, 9, 20, 16, 30, 19, 0, 7, 0, 16, 40, 4, 200],
        &[0, 16, 10, 5, 3, 1, 2, 3, 16, 20],
        &[1, 16, 10, 16, 20, 6, 9, 16, 30],
        &[0, 16, 10, 19, 0, 7, 3, 16, 10, 19, 0],
    ];
    for (number, piece) in pieces.iter().enumerate() {
        write("commitlog", &number.to_string(), piece)?;
    }
    Ok(())
}

fn sstables() -> Result<()> {
    for seed in 0..40_u8 {
        let edit = [seed, 12 + (seed & 3), seed, seed.wrapping_mul(7), 1 << (seed & 7)];
        write("sstable", &seed.to_string(), &edit)?;
    }
    Ok(())
}
