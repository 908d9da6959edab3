//! Rows and markers, byte by byte.

use ilion_rows::{BoundKind, paths};
use ilion_sstable::row_format::unfiltered_flag::{HAS_ALL_COLUMNS, HAS_COMPLEX_DELETION, HAS_EXTENSION};
use ilion_sstable::row_format::{
    BITMAP_COLUMNS, VALUES_PER_HEADER, cell_flag, extended_flag, fields_of_state, show_local_time,
    show_timestamp, show_ttl, unfiltered_flag,
};
use ilion_sstable::{EncodingStats, HeaderColumn};
use ilion_types::{CqlType, hex};

use super::Annotator;

const SHARD_BYTES: usize = 32;

fn names_of(flags: u8, names: &[(u8, &str)], none: &str) -> String {
    let set: Vec<&str> = names
        .iter()
        .filter(|(bit, _)| flags & bit != 0)
        .map(|(_, name)| *name)
        .collect();
    if set.is_empty() {
        none.to_owned()
    } else {
        set.join(", ")
    }
}

pub(super) fn flag_names(flags: u8) -> String {
    names_of(flags, &unfiltered_flag::NAMES, "nothing but columns")
}

fn extended_flag_names(flags: u8) -> String {
    names_of(flags, &extended_flag::NAMES, "none")
}

fn cell_flag_names(flags: u8) -> String {
    names_of(flags, &cell_flag::NAMES, "own timestamp")
}

fn text_of(ty: &CqlType, value: &[u8]) -> String {
    let printed = match ty {
        CqlType::Udt { .. } | CqlType::Tuple(_) => ty.print_literal(value),
        _ => ty.print_plain(value),
    };
    match (ty, printed) {
        (CqlType::Text | CqlType::Ascii, Ok(text)) => format!("'{text}'"),
        (_, Ok(text)) => text,
        (_, Err(_)) => hex::print(value),
    }
}

impl Annotator<'_> {
    pub(super) fn static_row(&mut self, previous: &mut u64) -> anyhow::Result<()> {
        let position = self.bytes.position();
        let flags = self.bytes.flags("static row flags", flag_names)?;
        self.bytes.indent();
        let extended = self.bytes.flags("more flags", extended_flag_names)?;
        let columns = self.header.statics.clone();
        self.body([flags, extended], &columns, 0)?;
        self.bytes.outdent();
        *previous = position;
        Ok(())
    }

    pub(super) fn row(&mut self, flags: u8, position: u64, previous: u64) -> anyhow::Result<()> {
        let extended = match flags & HAS_EXTENSION {
            0 => 0,
            _ => self.bytes.flags("more flags", extended_flag_names)?,
        };
        let count = self.header.clustering_types.len();
        self.clustering(count)?;
        let columns = self.header.regulars.clone();
        self.body([flags, extended], &columns, position - previous)
    }

    pub(super) fn marker(&mut self, position: u64, previous: u64) -> anyhow::Result<()> {
        let kind = self.bytes.take(1, "kind of bound", |bytes| {
            BoundKind::from_ordinal(bytes[0]).map_or("unknown".to_owned(), |kind| format!("{kind:?}"))
        })?;
        let count = self.bytes.u16("number of clustering values")?;
        if usize::from(count) > self.header.clustering_types.len() {
            return Err(self
                .bytes
                .corrupt("at most as many values as clustering columns before it"));
        }
        self.clustering(usize::from(count))?;
        self.bytes.count("size of the marker's body")?;
        self.previous_size(position - previous)?;
        if BoundKind::from_ordinal(kind[0]).is_some_and(BoundKind::is_boundary) {
            self.deletion("deletion that ends")?;
            return self.deletion("deletion that starts");
        }
        self.deletion("deletion")
    }

    fn clustering(&mut self, count: usize) -> anyhow::Result<()> {
        let types: Vec<CqlType> = self
            .header
            .clustering_types
            .iter()
            .map(|class| class.ty.clone())
            .collect();
        for (batch, types) in types[..count].chunks(VALUES_PER_HEADER).enumerate() {
            let header = self.bytes.uvint("clustering header", |header| {
                let state = |index: usize| match header >> (2 * index) & 3 {
                    0 => "value",
                    1 => "empty",
                    2 => "null",
                    _ => "invalid",
                };
                (0..types.len()).map(state).collect::<Vec<_>>().join(", ")
            })?;
            for (index, ty) in types.iter().enumerate() {
                if header >> (2 * index) & 3 == 0 {
                    self.value(
                        ty,
                        ty.fixed_len(),
                        &format!("clustering {}", batch * VALUES_PER_HEADER + index),
                    )?;
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, ty: &CqlType, fixed_len: Option<usize>, name: &str) -> anyhow::Result<()> {
        let length = match fixed_len {
            Some(length) => length,
            None => self.bytes.length(&format!("{name}: length"))?,
        };
        if *ty == CqlType::Counter {
            return self.counter(length, name);
        }
        if length > 0 {
            self.bytes.take(length, name, |value| text_of(ty, value))?;
        }
        Ok(())
    }

    /// A counter context: a header that says which shards are global or local, then the shards.
    fn counter(&mut self, length: usize, name: &str) -> anyhow::Result<()> {
        let end = self.bytes.position() + length as u64;
        let count = self.bytes.u16(&format!("{name}: shards in the header"))?;
        for _ in 0..count {
            self.bytes.take(2, &format!("{name}: header"), |bytes| {
                let index = i16::from_be_bytes([bytes[0], bytes[1]]);
                match u16::try_from(index) {
                    Ok(index) => format!("shard {index} is local"),
                    Err(_) => format!("shard {} is global", index.wrapping_sub(i16::MIN)),
                }
            })?;
        }
        while self.bytes.position() + SHARD_BYTES as u64 <= end {
            self.bytes.take(16, &format!("{name}: id of a shard"), |id| {
                text_of(&CqlType::Uuid, id)
            })?;
            self.bytes.take(8, &format!("{name}: clock"), super::big_endian)?;
            self.bytes.take(8, &format!("{name}: count"), super::big_endian)?;
        }
        match end.checked_sub(self.bytes.position()) {
            Some(0) => Ok(()),
            _ => Err(self.bytes.corrupt("a counter context that ends with its value")),
        }
    }

    fn previous_size(&mut self, expected: u64) -> anyhow::Result<()> {
        self.bytes
            .uvint("size of the row before", |size| match size == expected {
                true => size.to_string(),
                false => format!("{size}, which should be {expected}"),
            })?;
        Ok(())
    }

    /// Reads and prints a vint.
    fn vint(&mut self, name: &str, show: fn(u64, &EncodingStats) -> String) -> anyhow::Result<()> {
        let least = self.header.stats;
        self.bytes.uvint(name, |stored| show(stored, &least))?;
        Ok(())
    }

    fn deletion(&mut self, name: &str) -> anyhow::Result<()> {
        self.vint(&format!("{name}: marked at"), show_timestamp)?;
        self.vint(&format!("{name}: local time"), show_local_time)
    }

    fn body(&mut self, flags: [u8; 2], columns: &[HeaderColumn], previous_size: u64) -> anyhow::Result<()> {
        let size = self.bytes.count("size of the row's body")?;
        let end = self.bytes.position().saturating_add(size);
        self.previous_size(previous_size)?;
        for field in fields_of_state(flags) {
            self.vint(field.name, field.show)?;
        }
        let [flags, _] = flags;
        let present = match flags & HAS_ALL_COLUMNS != 0 {
            true => (0..columns.len()).collect(),
            false => self.subset(columns)?,
        };
        for index in present {
            self.column(&columns[index], flags)?;
        }
        if self.bytes.position() != end {
            return Err(self.bytes.corrupt("the end of the row"));
        }
        Ok(())
    }

    /// Reads the subset of columns that the row has; returns their indexes.
    fn subset(&mut self, columns: &[HeaderColumn]) -> anyhow::Result<Vec<usize>> {
        let all = 0..columns.len();
        if columns.len() < BITMAP_COLUMNS {
            let missing = self.bytes.uvint("missing columns", |missing| {
                let names = all.clone().filter(|index| missing >> index & 1 != 0);
                names
                    .map(|index| columns[index].name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            })?;
            return Ok(all.filter(|index| missing >> index & 1 == 0).collect());
        }
        let missing = self.bytes.count("number of missing columns")?;
        let missing = usize::try_from(missing).unwrap_or(usize::MAX);
        let Some(present) = columns.len().checked_sub(missing) else {
            return Err(self.bytes.corrupt("at most as many missing columns as there are"));
        };
        if missing == 0 {
            return Ok(all.collect());
        }
        let (lists_present, listed) = match present < columns.len() / 2 {
            true => (true, present),
            false => (false, missing),
        };
        let name = if lists_present { "column" } else { "missing column" };
        let mut indexes = Vec::new();
        for _ in 0..listed {
            let index = self.bytes.uvint(name, |index| {
                let column = usize::try_from(index).ok().and_then(|index| columns.get(index));
                column.map_or("unknown".to_owned(), |column| column.name.clone())
            })?;
            indexes.push(usize::try_from(index).unwrap_or(usize::MAX));
        }
        if indexes.iter().any(|index| *index >= columns.len()) {
            return Err(self.bytes.corrupt("indexes of columns before it"));
        }
        Ok(match lists_present {
            true => indexes,
            false => all.filter(|index| !indexes.contains(index)).collect(),
        })
    }

    fn column(&mut self, column: &HeaderColumn, flags: u8) -> anyhow::Result<()> {
        if !column.class.ty.is_multi_cell() {
            return self.cell(column);
        }
        if flags & HAS_COMPLEX_DELETION != 0 {
            self.deletion(&format!("{}: deletion", column.name))?;
        }
        let count = self.bytes.count(&format!("{}: number of cells", column.name))?;
        self.bytes.indent();
        for _ in 0..count {
            self.cell(column)?;
        }
        self.bytes.outdent();
        Ok(())
    }

    fn cell(&mut self, column: &HeaderColumn) -> anyhow::Result<()> {
        let ty = &column.class.ty;
        let flags = self
            .bytes
            .flags(&format!("{}: cell flags", column.name), cell_flag_names)?;
        self.bytes.indent();
        if flags & cell_flag::USES_ROW_TIMESTAMP == 0 {
            self.vint("timestamp", show_timestamp)?;
        }
        if flags & cell_flag::USES_ROW_TTL == 0 {
            if flags & (cell_flag::IS_DELETED | cell_flag::IS_EXPIRING) != 0 {
                let is_deleted = flags & cell_flag::IS_DELETED != 0;
                let name = if is_deleted { "deleted at" } else { "expires at" };
                self.vint(name, show_local_time)?;
            }
            if flags & cell_flag::IS_EXPIRING != 0 {
                self.vint("TTL", show_ttl)?;
            }
        }
        let mut path = ::bytes::Bytes::new();
        if ty.is_multi_cell() {
            let length = self.bytes.length("path length")?;
            path = self.bytes.take(length, "path", |path| path_text(ty, path))?;
        }
        if flags & cell_flag::HAS_EMPTY_VALUE == 0 {
            let fixed_len = ty.fixed_len().filter(|_| !ty.is_multi_cell());
            let value_type = paths::value_type(ty, &path).unwrap_or(&CqlType::Blob);
            self.value(value_type, fixed_len, "value")?;
        }
        self.bytes.outdent();
        Ok(())
    }
}

fn path_text(ty: &CqlType, path: &[u8]) -> String {
    match ty {
        CqlType::List { .. } => text_of(&CqlType::TimeUuid, path),
        CqlType::Set { element, .. } => text_of(element, path),
        CqlType::Map { key, .. } => text_of(key, path),
        CqlType::Udt { definition, .. } => {
            let field = usize::try_from(super::integer(path)).ok();
            let field = field.and_then(|field| definition.fields.get(field));
            field.map_or_else(|| hex::print(path), |(name, _)| format!("field {name}"))
        }
        _ => hex::print(path),
    }
}
