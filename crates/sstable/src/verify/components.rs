//! Checks the components that can be checked without decoding rows.

use std::collections::BTreeSet;

use ilion_env::Env;

use super::opened::Opened;
use super::verification::{OnProgress, Verification};
use crate::checksums::{Checksums, Owner};
use crate::component::Component;
use crate::{ChunkReader, Descriptor, Error, Result, digest, read_component};

/// Checks that TOC.txt names exactly the existing components.
pub(super) fn check_toc(
    env: &dyn Env,
    descriptor: &Descriptor,
    verification: &mut Verification,
) -> Result<()> {
    let path = descriptor.path(&Component::Toc);
    let Some(bytes) = read_component(env, descriptor, &Component::Toc)? else {
        verification.findings.missing(&path);
        return Ok(());
    };
    let mut listed = BTreeSet::new();
    let mut offset = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let name = line.strip_suffix(b"\n").unwrap_or(line);
        match std::str::from_utf8(name) {
            Ok(name) if !name.is_empty() => {
                let component = Component::from_name(name);
                if !is_index_of_cassandra(&component) && !env.exists(&descriptor.path(&component)) {
                    let expected =
                        format!("only names of existing components, but there is no file for {name:?}");
                    verification.findings.add(&path, offset, expected);
                }
                listed.insert(component);
            }
            _ => verification
                .findings
                .add(&path, offset, "the name of a component"),
        }
        offset += line.len() as u64;
    }
    if !bytes.ends_with(b"\n") {
        let end = bytes.len() as u64;
        verification.findings.add(&path, end, "a line break at the end");
    }
    let prefix = format!("{}-", descriptor.base_name());
    for file in descriptor.files(env)? {
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let component = Component::from_name(name.strip_prefix(&prefix).unwrap_or(name));
        // Ilion's own components may be created and removed at any time; temporary files are not components.
        if !component.is_side() && !name.ends_with(".tmp") && !listed.contains(&component) {
            let expected = format!("a line for each existing component, but there is none for {component}");
            verification.findings.add(&path, bytes.len() as u64, expected);
        }
    }
    Ok(())
}

/// True if Cassandra builds the component again when it is missing. Its snapshots may lack such files, though TOC.txt lists them.
fn is_index_of_cassandra(component: &Component) -> bool {
    match component {
        Component::Other(name) => name.starts_with("SAI+") || name.starts_with("SI_"),
        _ => false,
    }
}

/// Compares Data.db with Digest.crc32. Returns the stored size of Data.db.
pub(super) fn check_digest(
    env: &dyn Env,
    descriptor: &Descriptor,
    verification: &mut Verification,
    on_progress: OnProgress<'_>,
) -> Result<u64> {
    let path = descriptor.path(&Component::Digest);
    let Some(bytes) = read_component(env, descriptor, &Component::Digest)? else {
        verification
            .unchecked
            .push("the checksum of the whole of Data.db, since Digest.crc32 is missing".to_owned());
        return Ok(0);
    };
    let decoded = digest::decode(&bytes, &path);
    let Some(expected) = verification.findings.take(decoded)? else {
        return Ok(0);
    };
    if digest::encode(expected) != bytes.trim_ascii_end() || bytes.len() > digest::encode(expected).len() + 1
    {
        verification
            .findings
            .add(&path, 0, "a decimal number and nothing else");
    }
    let opened = env
        .open_read(&descriptor.path(&Component::Data))
        .map_err(Into::into);
    let Some(data) = verification.findings.take(opened)? else {
        return Ok(0);
    };
    let (crc, offset) = digest::crc_of(&*data, on_progress)?;
    if crc != expected {
        let expected = format!("bytes with the CRC-32 in Digest.crc32, {expected}; theirs is {crc}");
        verification.findings.add(data.path(), 0, expected);
    }
    Ok(offset)
}

/// Compares the components with Checksums.db.
pub(super) fn check_checksums(env: &dyn Env, opened: &Opened, verification: &mut Verification) -> Result<()> {
    let descriptor = &opened.descriptor;
    let owner = Owner::of(opened.data.stored_length(), &opened.statistics.stats);
    let read = Checksums::read(env, descriptor, owner);
    let Some(known) = verification.findings.take(read)?.flatten() else {
        return Ok(());
    };
    let found = Checksums::of_files(env, descriptor, &mut || true)?.unwrap_or_default();
    for (component, sums) in known.all() {
        let path = descriptor.path(component);
        match found.of(component) {
            Some(found) => {
                verification.findings.take(sums.compare(found, &path))?;
            }
            None => verification.findings.push(Error::Refused(format!(
                "missing file {}: Checksums.db has its checksum",
                path.display()
            ))),
        }
    }
    Ok(())
}

/// Checks every chunk of Data.db; reports each damaged chunk.
pub(super) fn check_chunks(
    data: &ChunkReader,
    verification: &mut Verification,
    on_progress: OnProgress<'_>,
) -> Result<()> {
    let mut position = 0;
    while position < data.data_length() {
        let read = data.chunk_at(position);
        if let Err(error) = read {
            let is_known = verification
                .findings
                .kept()
                .iter()
                .any(|known| known.to_string() == error.to_string());
            if !is_known {
                verification.findings.take::<()>(Err(error))?;
            }
        }
        position += u64::from(data.chunk_length());
        on_progress(position);
    }
    Ok(())
}
