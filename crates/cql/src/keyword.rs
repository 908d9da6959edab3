//! The keywords of CQL, and where each may be a name.

use crate::ast::NativeType;

/// Where an unquoted keyword may be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Nowhere.
    Reserved,
    /// Everywhere.
    Basic,
    /// Everywhere except for a user type.
    Native(NativeType),
    /// For a column, table or keyspace, but not for a function or user type.
    Special,
}

macro_rules! keywords {
    ($($variant:ident $word:literal $(or $synonym:literal)? => $class:expr,)*) => {
        /// A word with a meaning in the grammar.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Keyword { $($variant),* }

        /// Every word with its keyword.
        const WORDS: &[(&str, Keyword)] =
            &[$(($word, Keyword::$variant), $(($synonym, Keyword::$variant),)?)*];

        impl Keyword {
            pub(crate) fn class(self) -> Class {
                use Class::*;
                match self { $(Self::$variant => $class),* }
            }

            /// The word in upper case; of a keyword with two spellings, the one in Cassandra's messages.
            fn word(self) -> &'static str {
                match self { $(Self::$variant => keywords!(@last $word $($synonym)?)),* }
            }
        }
    };
    (@last $word:literal) => { $word };
    (@last $word:literal $synonym:literal) => { $synonym };
}

keywords! {
    Access "access" => Basic,
    Add "add" => Reserved,
    Aggregate "aggregate" => Basic,
    Aggregates "aggregates" => Basic,
    All "all" => Basic,
    Allow "allow" => Reserved,
    Alter "alter" => Reserved,
    And "and" => Reserved,
    Ann "ann" => Basic,
    Apply "apply" => Reserved,
    As "as" => Basic,
    Asc "asc" => Reserved,
    Ascii "ascii" => Native(NativeType::Ascii),
    Authorize "authorize" => Reserved,
    Batch "batch" => Reserved,
    Begin "begin" => Reserved,
    Bigint "bigint" => Native(NativeType::Bigint),
    Blob "blob" => Native(NativeType::Blob),
    Boolean "boolean" => Native(NativeType::Boolean),
    By "by" => Reserved,
    Called "called" => Basic,
    Cast "cast" => Special,
    Cidrs "cidrs" => Basic,
    Cluster "cluster" => Basic,
    Clustering "clustering" => Basic,
    Compact "compact" => Basic,
    Contains "contains" => Basic,
    Count "count" => Special,
    Counter "counter" => Native(NativeType::Counter),
    Create "create" => Reserved,
    Custom "custom" => Basic,
    Datacenters "datacenters" => Basic,
    Date "date" => Native(NativeType::Date),
    Decimal "decimal" => Native(NativeType::Decimal),
    Default "default" => Basic,
    Delete "delete" => Reserved,
    Desc "desc" => Reserved,
    Describe "describe" => Reserved,
    Distinct "distinct" => Special,
    Double "double" => Native(NativeType::Double),
    Drop "drop" => Reserved,
    Duration "duration" => Native(NativeType::Duration),
    Entries "entries" => Reserved,
    Execute "execute" => Reserved,
    Exists "exists" => Basic,
    False "false" => Reserved,
    Filtering "filtering" => Basic,
    Finalfunc "finalfunc" => Basic,
    Float "float" => Native(NativeType::Float),
    From "from" => Reserved,
    Frozen "frozen" => Basic,
    Full "full" => Reserved,
    Function "function" => Basic,
    Functions "functions" => Basic,
    Grant "grant" => Reserved,
    Group "group" => Basic,
    Hashed "hashed" => Basic,
    Identity "identity" => Basic,
    If "if" => Reserved,
    In "in" => Reserved,
    Index "index" => Reserved,
    Inet "inet" => Native(NativeType::Inet),
    Infinity "infinity" => Reserved,
    Initcond "initcond" => Basic,
    Input "input" => Basic,
    Insert "insert" => Reserved,
    Int "int" => Native(NativeType::Int),
    Internals "internals" => Basic,
    Into "into" => Reserved,
    Is "is" => Reserved,
    Json "json" => Special,
    Key "key" => Special,
    Keys "keys" => Basic,
    Keyspace "keyspace" => Reserved,
    Keyspaces "keyspaces" => Basic,
    Language "language" => Basic,
    Like "like" => Basic,
    Limit "limit" => Reserved,
    List "list" => Basic,
    Login "login" => Basic,
    Map "map" => Basic,
    Masked "masked" => Basic,
    Materialized "materialized" => Reserved,
    Maxwritetime "maxwritetime" => Special,
    Mbean "mbean" => Basic,
    Mbeans "mbeans" => Basic,
    Modify "modify" => Reserved,
    Nan "nan" => Reserved,
    Nologin "nologin" => Basic,
    Norecursive "norecursive" => Reserved,
    Nosuperuser "nosuperuser" => Basic,
    Not "not" => Reserved,
    Null "null" => Reserved,
    Of "of" => Reserved,
    On "on" => Reserved,
    Only "only" => Basic,
    Options "options" => Basic,
    Or "or" => Reserved,
    Order "order" => Reserved,
    Partition "partition" => Basic,
    Password "password" => Basic,
    Per "per" => Basic,
    Permission "permission" => Basic,
    Permissions "permissions" => Basic,
    Primary "primary" => Reserved,
    Rename "rename" => Reserved,
    Replace "replace" => Basic,
    Returns "returns" => Basic,
    Revoke "revoke" => Reserved,
    Role "role" => Basic,
    Roles "roles" => Basic,
    Schema "schema" => Reserved,
    Select "select" => Reserved,
    SelectMasked "select_masked" => Basic,
    Set "set" => Reserved,
    Sfunc "sfunc" => Basic,
    Smallint "smallint" => Native(NativeType::Smallint),
    Static "static" => Basic,
    Storage "storage" => Basic,
    Stype "stype" => Basic,
    Superuser "superuser" => Basic,
    Superusers "superusers" => Basic,
    Table "table" or "columnfamily" => Reserved,
    Tables "columnfamilies" or "tables" => Basic,
    Text "text" => Native(NativeType::Text),
    Time "time" => Native(NativeType::Time),
    Timestamp "timestamp" => Native(NativeType::Timestamp),
    Timeuuid "timeuuid" => Native(NativeType::Timeuuid),
    Tinyint "tinyint" => Native(NativeType::Tinyint),
    To "to" => Reserved,
    Token "token" => Reserved,
    Trigger "trigger" => Basic,
    True "true" => Reserved,
    Truncate "truncate" => Reserved,
    Ttl "ttl" => Special,
    Tuple "tuple" => Basic,
    Type "type" => Basic,
    Types "types" => Basic,
    Unlogged "unlogged" => Reserved,
    Unmask "unmask" => Basic,
    Unset "unset" => Basic,
    Update "update" => Reserved,
    Use "use" => Reserved,
    User "user" => Basic,
    Users "users" => Basic,
    Using "using" => Reserved,
    Uuid "uuid" => Native(NativeType::Uuid),
    Values "values" => Basic,
    Varchar "varchar" => Native(NativeType::Varchar),
    Varint "varint" => Native(NativeType::Varint),
    Vector "vector" => Basic,
    View "view" => Reserved,
    Where "where" => Reserved,
    With "with" => Reserved,
    Writetime "writetime" => Special,
}

/// Slots of the hash table; a power of two with room to spare.
const SLOTS: usize = 1024;
/// An empty slot.
const VACANT: u8 = u8::MAX;
/// The longest keyword.
const LENGTH_MAX: usize = 14;

/// Indexes into `WORDS`, by hash, with linear probing.
static TABLE: [u8; SLOTS] = build_table();

const fn build_table() -> [u8; SLOTS] {
    assert!(WORDS.len() < VACANT as usize);
    let mut table = [VACANT; SLOTS];
    let mut index = 0;
    while index < WORDS.len() {
        let word = WORDS[index].0.as_bytes();
        let mut hash = Hash::new();
        let mut at = 0;
        while at < word.len() {
            hash = hash.push(word[at]);
            at += 1;
        }
        let mut slot = hash.slot();
        while table[slot] != VACANT {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = index as u8;
        index += 1;
    }
    table
}

/// The hash of a word, computed while it is scanned; ignores case.
#[derive(Clone, Copy)]
pub(crate) struct Hash(u32);

impl Hash {
    pub(crate) const fn new() -> Self {
        Self(0)
    }

    pub(crate) const fn push(self, byte: u8) -> Self {
        Self(
            (self.0 ^ (byte | 0x20) as u32)
                .wrapping_mul(0x9E37_79B1)
                .rotate_left(5),
        )
    }

    const fn slot(self) -> usize {
        (self.0 >> 22) as usize
    }
}

/// The keyword of `word`, in any case.
pub(crate) fn find(word: &str, hash: Hash) -> Option<Keyword> {
    if word.len() > LENGTH_MAX {
        return None;
    }
    let mut slot = hash.slot();
    loop {
        let (candidate, keyword) = WORDS.get(usize::from(TABLE[slot]))?;
        if candidate.eq_ignore_ascii_case(word) {
            return Some(*keyword);
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// Like [`Keyword::find`], but computes the hash.
pub(crate) fn parse(word: &str) -> Option<Keyword> {
    find(word, word.bytes().fold(Hash::new(), Hash::push))
}

impl Keyword {
    /// True if it may name a column, table, keyspace or field.
    pub(crate) fn is_name(self) -> bool {
        self.class() != Class::Reserved
    }

    /// True if it may name a function.
    pub(crate) fn is_function_name(self) -> bool {
        matches!(self.class(), Class::Basic | Class::Native(_)) || matches!(self, Self::Token | Self::Count)
    }

    /// True if it may name a user type.
    pub(crate) fn is_type_name(self) -> bool {
        self.class() == Class::Basic || self == Self::Key
    }

    /// The name of the token in messages.
    pub(crate) fn token_name(self) -> String {
        match self {
            Self::True | Self::False => "BOOLEAN".into(),
            Self::Nan => "K_POSITIVE_NAN".into(),
            Self::Infinity => "K_POSITIVE_INFINITY".into(),
            _ => format!("K_{}", self.word().to_ascii_uppercase()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_in_any_case_and_others_are_not() {
        for (word, keyword) in WORDS {
            assert!(word.len() <= LENGTH_MAX);
            assert_eq!(parse(word), Some(*keyword));
            assert_eq!(parse(&word.to_ascii_uppercase()), Some(*keyword));
            assert_eq!(parse(&format!("{word}x")).filter(|found| found == keyword), None);
        }
        assert_eq!(parse(""), None);
        assert_eq!(parse("generated"), None);
    }
}
