//! Names of SSTable files.
//!
//! ```text
//! name      := version '-' id '-' format '-' component             nb-12-big-Data.db
//! id        := decimal | time-uuid                                 3h5o_18nl_0nd222sc9hl82rru3u
//! time-uuid := days '_' seconds '_' ticks low-bits                 base 36; 4, 4, 5 and 13 digits
//! format    := 'big' | 'bti'
//! ```
//!
//! The fields of a time-UUID id: days since 1582-10-15, the second of the day, the 100 ns ticks in that second, and the low 64
//! bits of the UUID. Not here: the files of a directory (`directory`).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::{Component, Format, Version};

/// Distinguishes the SSTables of a table. Sequence numbers sort before time UUIDs, each kind by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SSTableId {
    /// A number that grows in the table's directory, as Cassandra uses by default.
    Sequence(u32),
    /// A version 1 UUID (`uuid_sstable_identifiers_enabled`).
    TimeUuid(Uuid),
}

const TICKS_PER_SECOND: u64 = 10_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

impl SSTableId {
    /// Parses either form.
    pub fn parse(text: &str) -> Option<Self> {
        if text.contains('_') {
            return parse_time_uuid(text).map(Self::TimeUuid);
        }
        let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number: u32 = text.parse().ok().filter(|_| is_decimal)?;
        // Only the printed form is accepted: two names must never mean the same SSTable.
        (number.to_string() == text && i32::try_from(number).is_ok()).then_some(Self::Sequence(number))
    }

    /// The bytes of the id, as in the key cache and in Cassandra's tables: the 4 bytes of a number, or the 16 bytes of a UUID.
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Sequence(number) => number.to_be_bytes().to_vec(),
            Self::TimeUuid(uuid) => uuid.as_bytes().to_vec(),
        }
    }

    /// The inverse of [`SSTableId::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.len() {
            4 => bytes.try_into().ok().map(u32::from_be_bytes).map(Self::Sequence),
            16 => Uuid::from_slice(bytes).ok().map(Self::TimeUuid),
            _ => None,
        }
    }

    fn order(&self) -> (u8, u64, Uuid) {
        match self {
            Self::Sequence(number) => (0, u64::from(*number), Uuid::nil()),
            Self::TimeUuid(uuid) => (1, ticks_of(*uuid), *uuid),
        }
    }
}

impl Ord for SSTableId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for SSTableId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

fn ticks_of(uuid: Uuid) -> u64 {
    let (low, mid, high, _) = uuid.as_fields();
    (u64::from(high & 0x0fff) << 48) | (u64::from(mid) << 32) | u64::from(low)
}

fn parse_time_uuid(text: &str) -> Option<Uuid> {
    let mut parts = text.split('_');
    let (days, seconds, tail) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || days.len() != 4 || seconds.len() != 4 || tail.len() != 18 {
        return None;
    }
    let (in_second, low) = tail.split_at_checked(5)?;
    let seconds = base36(seconds).filter(|seconds| *seconds < SECONDS_PER_DAY)?;
    let in_second = base36(in_second).filter(|ticks| *ticks < TICKS_PER_SECOND)?;
    let ticks = (base36(days)? * SECONDS_PER_DAY + seconds) * TICKS_PER_SECOND + in_second;
    let low = base36(low)?;
    if ticks >> 60 != 0 {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the fields of a version 1 UUID are slices of the ticks"
    )]
    let (time_low, time_mid, time_high) = (ticks as u32, (ticks >> 32) as u16, 0x1000 | (ticks >> 48) as u16);
    Some(Uuid::from_fields(
        time_low,
        time_mid,
        time_high,
        &low.to_be_bytes(),
    ))
}

fn base36(text: &str) -> Option<u64> {
    let lower = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    u64::from_str_radix(text, 36).ok().filter(|_| lower)
}

fn print_base36(mut value: u64, digits: usize, out: &mut String) {
    let mut buffer = [b'0'; 13];
    for slot in buffer[..digits].iter_mut().rev() {
        *slot = b"0123456789abcdefghijklmnopqrstuvwxyz"[(value % 36) as usize];
        value /= 36;
    }
    out.extend(buffer[..digits].iter().map(|byte| char::from(*byte)));
}

impl fmt::Display for SSTableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequence(number) => write!(f, "{number}"),
            Self::TimeUuid(uuid) => {
                let ticks = ticks_of(*uuid);
                let seconds = ticks / TICKS_PER_SECOND;
                let (_, low) = uuid.as_u64_pair();
                let mut text = String::with_capacity(28);
                print_base36(seconds / SECONDS_PER_DAY, 4, &mut text);
                text.push('_');
                print_base36(seconds % SECONDS_PER_DAY, 4, &mut text);
                text.push('_');
                print_base36(ticks % TICKS_PER_SECOND, 5, &mut text);
                print_base36(low, 13, &mut text);
                f.write_str(&text)
            }
        }
    }
}

/// Identifies an SSTable: directory, version, id and format. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Descriptor {
    /// The directory of its components.
    pub directory: Arc<Path>,
    /// Its id.
    pub id: SSTableId,
    /// Its format version.
    pub version: Version,
    /// The format of its index.
    pub format: Format,
}

impl Descriptor {
    /// An SSTable of `directory`.
    pub fn new(directory: impl Into<Arc<Path>>, version: Version, id: SSTableId, format: Format) -> Self {
        Self {
            directory: directory.into(),
            id,
            version,
            format,
        }
    }

    /// The SSTable and the component of a file name; `None` for other files, including temporary ones.
    pub fn parse(directory: &Arc<Path>, file_name: &str) -> Option<(Self, Component)> {
        let mut parts = file_name.splitn(4, '-');
        let version = Version::parse(parts.next()?)?;
        let id = SSTableId::parse(parts.next()?)?;
        let format = Format::parse(parts.next()?)?;
        let component = parts.next().filter(|name| !name.is_empty())?;
        if component.ends_with(".tmp") {
            return None;
        }
        let descriptor = Self::new(directory.clone(), version, id, format);
        Some((descriptor, Component::from_name(component)))
    }

    /// The SSTable and the component of a path.
    pub fn from_path(path: &Path) -> Option<(Self, Component)> {
        let directory: Arc<Path> = path.parent()?.into();
        Self::parse(&directory, path.file_name()?.to_str()?)
    }

    /// The common start of its components' names, without the last dash: `nb-12-big`.
    pub fn base_name(&self) -> String {
        format!("{}-{}-{}", self.version, self.id, self.format.as_str())
    }

    /// The file name of a component.
    pub fn file_name(&self, component: &Component) -> String {
        format!("{}-{component}", self.base_name())
    }

    /// The path of a component.
    pub fn path(&self, component: &Component) -> PathBuf {
        self.directory.join(self.file_name(component))
    }

    /// The path of a component while it is written, before it is renamed.
    pub(crate) fn temporary_path(&self, component: &Component) -> PathBuf {
        self.directory.join(format!("{}.tmp", self.file_name(component)))
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.directory.join(self.base_name()).display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Option<(Descriptor, Component)> {
        Descriptor::parse(&Arc::from(Path::new("ks/t")), name)
    }

    #[test]
    fn names_of_components_parse_and_print() {
        let names = [
            "nb-1-big-Data.db",
            "oa-2147483647-big-Index.db",
            "da-3h5o_18nl_0nd222sc9hl82rru3u-bti-Partitions.db",
            "nb-7-big-SAI+aa-b+Meta.db",
            "nb-7-big-Tokens.db",
        ];
        for name in names {
            let (descriptor, component) = parse(name).unwrap();
            assert_eq!(descriptor.file_name(&component), name);
            assert_eq!(
                Descriptor::from_path(&descriptor.path(&component)),
                Some((descriptor, component))
            );
        }
    }

    #[test]
    fn other_names_are_not_components() {
        for name in [
            "nb-1-big-Data.db.tmp",
            "nb-01-big-Data.db",
            "nb-+1-big-Data.db",
            "nb-2147483648-big-Data.db",
            "nb-1-huge-Data.db",
            "NB-1-big-Data.db",
            "nb-1-big",
            "nb-1-big-",
            "manifest.json",
            "nb_txn_flush_c9a271e4-8a85-11ea-b5bc-4efbe6aa03f4.log",
            "da-3H5o_18nl_0nd222sc9hl82rru3u-bti-Rows.db",
            "da-3h5o_zzzz_0nd222sc9hl82rru3u-bti-Rows.db",
            "da-3h5o_18nl_0nd222sc9hl82rru3-bti-Rows.db",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn time_uuids_keep_all_their_bits_and_sort_by_time() {
        let texts = [
            "00000000-0000-1000-8000-000000000000",
            "c9a271e4-8a85-11ea-b5bc-4efbe6aa03f4",
            "ffffffff-ffff-1fff-bfff-ffffffffffff",
        ];
        let ids = texts.map(|text| SSTableId::TimeUuid(text.parse().unwrap()));
        for id in ids {
            assert_eq!(SSTableId::parse(&id.to_string()), Some(id));
            assert_eq!(SSTableId::from_bytes(&id.to_bytes()), Some(id));
        }
        assert!(SSTableId::Sequence(9) < SSTableId::Sequence(10));
        assert!(SSTableId::Sequence(10) < ids[0] && ids[0] < ids[1] && ids[1] < ids[2]);
        assert_eq!(SSTableId::from_bytes(&[0, 0, 0, 5]), Some(SSTableId::Sequence(5)));
    }
}
