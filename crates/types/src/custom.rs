//! The classes of Cassandra without a CQL name that Ilion knows: [`CqlType::Custom`].
//!
//! | class | values | order |
//! | --- | --- | --- |
//! | `LexicalUUIDType` | a UUID | as Java compares UUIDs: two signed halves |
//! | `CompositeType(T, ...)` | components, see below | component by component |
//! | `DynamicCompositeType(a=>T, ...)` | components that name their type | by the types' names, then by value |
//! | `PartitionerDefinedOrder(p)` | partition keys | by token, then by bytes |
//!
//! ```text
//! composite := [static: 0xFFFF] component*     component := [type] length: u16, bytes, end: i8      (big-endian)
//! type      := 0x80 alias: u8 | length: u16, class                                   (dynamic composites only)
//! ```
//!
//! As text a composite is `a:b:c`. `\:` is a colon inside a component; a last component `!` or `_` sets the last `end` to 1 or
//! -1. Compat: `AbstractCompositeType`, `DynamicCompositeType`, `LexicalUUIDType`.
//!
//! A class is parsed for each comparison and print: columns of these types are rare. Invariant: a total order on any bytes,
//! without panics; malformed composites are ordered by their bytes.

use std::cmp::Ordering;

use ilion_codec::Reader;

use crate::cql_type::PACKAGE;
use crate::{CqlType, Error, Partitioner, hex};

impl CqlType {
    /// The first class in this type that Ilion does not know; the lengths and the order of its values are unknown, too.
    pub fn unknown_class(&self) -> Option<&str> {
        match self {
            Self::Custom(class) => KnownClass::of(class).is_none().then_some(class),
            Self::List { element, .. } | Self::Set { element, .. } | Self::Vector { element, .. } => {
                element.unknown_class()
            }
            Self::Map { key, value, .. } => key.unknown_class().or_else(|| value.unknown_class()),
            Self::Tuple(types) => types.iter().find_map(Self::unknown_class),
            Self::Udt { definition, .. } => definition.fields.iter().find_map(|(_, ty)| ty.unknown_class()),
            _ => None,
        }
    }
}

/// A class that Ilion knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnownClass {
    LexicalUuid,
    Composite(Vec<CqlType>),
    DynamicComposite(Vec<(u8, CqlType)>),
    PartitionKeys(Partitioner),
}

impl KnownClass {
    /// Parses a class; `None` if it is unknown or contains an unknown class.
    pub(crate) fn of(class: &str) -> Option<Self> {
        if let Some(partitioner) = Partitioner::of_keys(class) {
            return Some(Self::PartitionKeys(partitioner));
        }
        let simple = class.strip_prefix(PACKAGE)?;
        let known = if simple == "LexicalUUIDType" {
            Self::LexicalUuid
        } else if simple.starts_with("CompositeType(") {
            Self::Composite(crate::partition_key_types(class).ok()?)
        } else {
            let aliases = simple.strip_prefix("DynamicCompositeType(")?.strip_suffix(')')?;
            Self::DynamicComposite(crate::class::parse_aliases(aliases).ok()?)
        };
        let is_known = |ty: &CqlType| ty.unknown_class().is_none();
        let are_known = match &known {
            Self::Composite(types) => types.iter().all(is_known),
            Self::DynamicComposite(aliases) => aliases.iter().all(|(_, ty)| is_known(ty)),
            _ => true,
        };
        are_known.then_some(known)
    }

    pub(crate) fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::LexicalUuid => compare_lexical(a, b),
            Self::PartitionKeys(partitioner) => (partitioner.token(a), a).cmp(&(partitioner.token(b), b)),
            Self::Composite(_) | Self::DynamicComposite(_) => self.compare_composites(a, b),
        }
    }

    pub(crate) fn validate(&self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::LexicalUuid if matches!(bytes.len(), 0 | 16) => Ok(()),
            Self::LexicalUuid => Err(Error::bytes(format!(
                "LexicalUUID should be 16 or 0 bytes ({})",
                bytes.len()
            ))),
            Self::PartitionKeys(_) => Ok(()),
            Self::Composite(_) | Self::DynamicComposite(_) => {
                for component in self.components(bytes) {
                    let component = component?;
                    component.ty.validate(component.bytes)?;
                }
                Ok(())
            }
        }
    }

    /// Appends the value as plain text (`AbstractType.getString`).
    pub(crate) fn print(&self, bytes: &[u8], out: &mut String) -> Result<(), Error> {
        match self {
            Self::LexicalUuid => out.push_str(&CqlType::Uuid.print_plain(bytes)?),
            Self::PartitionKeys(_) => hex::print_into(bytes, out),
            Self::Composite(_) | Self::DynamicComposite(_) => {
                for (index, component) in self.components(bytes).enumerate() {
                    let component = component?;
                    if index > 0 {
                        out.push(':');
                    }
                    if let Some(name) = component.name {
                        out.push_str(&name);
                        out.push('@');
                    }
                    out.push_str(&escape(&component.ty.print_plain(component.bytes)?));
                    match component.end {
                        0 => {}
                        1.. => out.push_str(":!"),
                        _ => out.push_str(":_"),
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn parse(&self, text: &str) -> Result<Vec<u8>, Error> {
        match self {
            Self::LexicalUuid => CqlType::Uuid.parse_plain(text),
            Self::PartitionKeys(_) => CqlType::Blob.parse_plain(text),
            Self::Composite(_) | Self::DynamicComposite(_) => self.parse_composite(text),
        }
    }

    fn parse_composite(&self, text: &str) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        let parts = if text.is_empty() { Vec::new() } else { split(text) };
        for (index, part) in parts.into_iter().enumerate() {
            let end = match part {
                "!" => 1_u8,
                "_" => 0xFF,
                part => {
                    let (ty, part) = self.parse_type(index, part, &mut out)?;
                    let value = ty.parse_plain(&unescape(part))?;
                    let len = u16::try_from(value.len()).map_err(|_| {
                        Error::literal(format!("A component of {} bytes is too long", value.len()))
                    })?;
                    out.extend_from_slice(&len.to_be_bytes());
                    out.extend_from_slice(&value);
                    out.push(0);
                    continue;
                }
            };
            match out.last_mut() {
                Some(last) => *last = end,
                None => return Err(Error::literal(format!("'{text}' ends no component"))),
            }
            break;
        }
        Ok(out)
    }

    /// Determines the type of a component in a text, and returns the rest of the text. If the text names the type, appends the name to
    /// `out`.
    fn parse_type<'t>(
        &self,
        index: usize,
        part: &'t str,
        out: &mut Vec<u8>,
    ) -> Result<(CqlType, &'t str), Error> {
        let invalid = || Error::literal(format!("Invalid component representation: {part}"));
        let aliases = match self {
            Self::DynamicComposite(aliases) => aliases,
            Self::Composite(types) => return Ok((types.get(index).ok_or_else(invalid)?.clone(), part)),
            _ => return Err(invalid()),
        };
        let (name, rest) = part.split_once('@').ok_or_else(invalid)?;
        if let [alias] = name.as_bytes()
            && let Some((_, ty)) = aliases.iter().find(|(known, _)| known == alias)
        {
            out.extend_from_slice(&[0x80, *alias]);
            return Ok((ty.clone(), rest));
        }
        let ty = known_type(name).ok_or_else(invalid)?;
        let len = u16::try_from(name.len()).ok().filter(|len| *len < 0x8000);
        out.extend_from_slice(&len.ok_or_else(invalid)?.to_be_bytes());
        out.extend_from_slice(name.as_bytes());
        Ok((ty, rest))
    }

    fn compare_composites(&self, a: &[u8], b: &[u8]) -> Ordering {
        if a.is_empty() || b.is_empty() {
            return b.is_empty().cmp(&a.is_empty());
        }
        match (is_static(a), is_static(b)) {
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            _ => {}
        }
        let (mut left, mut right) = (self.components(a), self.components(b));
        loop {
            let (left, right) = match (left.next(), right.next()) {
                (Some(Ok(left)), Some(Ok(right))) => (left, right),
                (None, None) => return Ordering::Equal,
                (None, Some(Ok(_))) => return Ordering::Less,
                (Some(Ok(_)), None) => return Ordering::Greater,
                _ => return a.cmp(b),
            };
            let order = compare_types(&left.ty, &right.ty)
                .then_with(|| left.ty.compare(left.bytes, right.bytes))
                .then_with(|| left.end.cmp(&right.end));
            if order != Ordering::Equal {
                return order;
            }
        }
    }

    fn components<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Result<Component<'a>, Error>> {
        let mut reader = Reader::new(if is_static(bytes) { &bytes[2..] } else { bytes });
        let mut index = 0;
        std::iter::from_fn(move || {
            if reader.is_empty() {
                return None;
            }
            let component = self.component(index, &mut reader);
            index += 1;
            if component.is_err() {
                reader = Reader::new(&[]);
            }
            Some(component)
        })
    }

    fn component<'a>(&self, index: usize, reader: &mut Reader<'a>) -> Result<Component<'a>, Error> {
        let malformed = |error| Error::bytes(format!("Malformed component {index} of a composite: {error}"));
        let (ty, name) = match self {
            Self::Composite(types) => (types.get(index).cloned(), None),
            Self::DynamicComposite(aliases) => {
                let header = reader.u16().map_err(malformed)?;
                let [high, low] = header.to_be_bytes();
                if high & 0x80 == 0 {
                    let name = reader.take(usize::from(header)).map_err(malformed)?;
                    let name = String::from_utf8_lossy(name).into_owned();
                    (known_type(&name), Some(name))
                } else {
                    let ty = aliases.iter().find(|(alias, _)| *alias == low);
                    (ty.map(|(_, ty)| ty.clone()), Some(char::from(low).to_string()))
                }
            }
            _ => (None, None),
        };
        let ty = ty.ok_or_else(|| Error::bytes(format!("Cannot find comparator for component {index}")))?;
        let bytes = reader.bytes16().map_err(malformed)?;
        let end = reader.u8().map_err(malformed)?.cast_signed();
        if end != 0 && !reader.is_empty() {
            return Err(Error::bytes(format!(
                "Invalid bytes remaining after an end-of-component at component {index}"
            )));
        }
        Ok(Component { ty, name, bytes, end })
    }
}

/// A component of a composite.
struct Component<'a> {
    ty: CqlType,
    /// The name of the type, as in the value; `None` if the class determines the type.
    name: Option<String>,
    bytes: &'a [u8],
    end: i8,
}

fn known_type(class: &str) -> Option<CqlType> {
    let (ty, _) = CqlType::from_class(class).ok()?;
    ty.unknown_class().is_none().then_some(ty)
}

fn is_static(composite: &[u8]) -> bool {
    composite.starts_with(&[0xFF, 0xFF])
}

/// Orders components of different types by the simple names of their classes.
fn compare_types(a: &CqlType, b: &CqlType) -> Ordering {
    fn simple(class: &str) -> &str {
        let bare = class.split('(').next().unwrap_or(class);
        bare.rsplit('.').next().unwrap_or(bare)
    }
    if a == b {
        return Ordering::Equal;
    }
    simple(&a.to_class()).cmp(simple(&b.to_class()))
}

/// Compares two signed halves, as Java does for UUIDs.
fn compare_lexical(a: &[u8], b: &[u8]) -> Ordering {
    let key = |bytes: &[u8]| {
        let bits = bytes.first_chunk().map(|bytes| u128::from_be_bytes(*bytes));
        bits.map(|bits| bits ^ ((1 << 127) | (1 << 63)))
    };
    key(a).cmp(&key(b)).then_with(|| match key(a) {
        Some(_) => Ordering::Equal,
        None => a.cmp(b),
    })
}

/// Splits at each `:` without a backslash before it.
fn split(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b':' && (at == 0 || bytes[at - 1] != b'\\') {
            parts.push(&text[start..at]);
            start = at + 1;
        }
    }
    parts.push(&text[start..]);
    parts
}

fn escape(text: &str) -> String {
    let mut escaped = text.replace(':', "\\:");
    if escaped.ends_with(['\\', '!']) {
        escaped.push('!');
    }
    escaped
}

fn unescape(text: &str) -> String {
    let text = text.replace("\\:", ":");
    text.strip_suffix('!').map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(class: &str) -> CqlType {
        CqlType::from_class(class).unwrap().0
    }

    #[test]
    fn short_names_become_full_ones() {
        for (class, full) in [
            ("LexicalUUIDType", "P.LexicalUUIDType"),
            (
                "CompositeType(UTF8Type, Int32Type)",
                "P.CompositeType(P.UTF8Type,P.Int32Type)",
            ),
            (
                "DynamicCompositeType(a=>UTF8Type,b => Int32Type)",
                "P.DynamicCompositeType(a=>P.UTF8Type,b=>P.Int32Type)",
            ),
            ("DynamicCompositeType", "P.DynamicCompositeType()"),
            (
                "PartitionerDefinedOrder(RandomPartitioner)",
                "P.PartitionerDefinedOrder(org.apache.cassandra.dht.RandomPartitioner)",
            ),
        ] {
            let ty = ty(class);
            assert_eq!(ty.to_class(), full.replace("P.", PACKAGE));
            assert_eq!(ty.unknown_class(), None, "{class}");
            assert_eq!(CqlType::from_class(&ty.to_class()).unwrap().0, ty);
        }
        for class in [
            "CompositeType(FooType)",
            "PartitionerDefinedOrder(x)",
            "DynamicCompositeType(a=>FooType)",
        ] {
            assert!(ty(class).unknown_class().is_some(), "{class}");
        }
        for class in [
            "CompositeType",
            "CompositeType()",
            "DynamicCompositeType(ab=>Int32Type)",
        ] {
            assert!(CqlType::from_class(class).is_err(), "{class}");
        }
    }

    #[test]
    fn a_composite_is_written_as_its_components_between_colons() {
        let pair = ty("CompositeType(UTF8Type,Int32Type)");
        let bytes = pair.parse_plain("abc:123").unwrap();
        assert_eq!(bytes, b"\0\x03abc\0\0\x04\0\0\0\x7b\0");
        assert_eq!(pair.print_plain(&bytes).unwrap(), "abc:123");
        for text in ["a\\:b!:7", "abc", "abc:!", "a:5:_", ":0"] {
            let bytes = pair.parse_plain(text).unwrap();
            let again = pair.print_plain(&bytes).unwrap();
            assert_eq!(pair.parse_plain(&again).unwrap(), bytes, "{text} {again}");
        }
        for bad in ["a:b", "a:1:2", "!"] {
            assert!(pair.parse_plain(bad).is_err(), "{bad}");
        }
        assert!(pair.validate(b"\0\x03ab").is_err());
    }

    #[test]
    fn composites_are_ordered_by_their_components() {
        let pair = ty("CompositeType(Int32Type,UTF8Type)");
        let values = ["-1", "-1:a", "-1:b", "-1:b:!", "2", "10:a"];
        let values = values.map(|text| pair.parse_plain(text).unwrap());
        for (index, a) in values.iter().enumerate() {
            for (other, b) in values.iter().enumerate() {
                assert_eq!(pair.compare(a, b), index.cmp(&other));
            }
        }
    }

    #[test]
    fn a_dynamic_composite_names_its_types() {
        let dynamic = ty("DynamicCompositeType(i=>Int32Type,t=>UTF8Type)");
        let bytes = dynamic.parse_plain("i@7:t@x:LongType@9").unwrap();
        assert_eq!(dynamic.print_plain(&bytes).unwrap(), "i@7:t@x:LongType@9");
        assert_eq!(&bytes[..2], b"\x80i");
        let small = dynamic.parse_plain("i@-7").unwrap();
        assert_eq!(dynamic.compare(&small, &bytes), Ordering::Less);
        assert!(dynamic.parse_plain("7").is_err());
        assert!(dynamic.parse_plain("FooType@7").is_err());
    }

    #[test]
    fn any_bytes_have_an_order() {
        let types = [
            "CompositeType(Int32Type,UTF8Type)",
            "DynamicCompositeType(i=>Int32Type)",
            "LexicalUUIDType",
        ];
        let samples: [&[u8]; 8] = [
            b"",
            b"\0",
            b"\xFF\xFF",
            b"\0\x04\0\0\0\x01\0",
            b"\x80i\0\x04\0\0\0\x01\0",
            b"\x80z\0\0\0",
            b"\0\x08LongType\0\0\0",
            &[0xFF; 16],
        ];
        for class in types {
            let ty = ty(class);
            for a in samples {
                assert_eq!(ty.compare(a, a), Ordering::Equal);
                let _ = (ty.validate(a), ty.print_plain(a), ty.print_literal(a));
                for b in samples {
                    assert_eq!(
                        ty.compare(a, b),
                        ty.compare(b, a).reverse(),
                        "{class} {a:?} {b:?}"
                    );
                }
            }
        }
    }
}
