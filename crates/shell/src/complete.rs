//! Completion: the words that may stand at a place of a text. A pure function of the text and the names of the schema.

use ilion_cql::{Class, outline};
use ilion_query::FUNCTION_NAMES;
use ilion_types::quote_name;

use crate::catalog::Catalog;
use crate::quotes::unquote;
use crate::script::{Next, next_statement};

/// Words that begin a statement or a command.
const BEGINNINGS: [&str; 34] = [
    "ALTER",
    "BEGIN BATCH",
    "BEGIN UNLOGGED BATCH",
    "CAPTURE",
    "CLEAR",
    "CONSISTENCY",
    "COPY",
    "CREATE",
    "DELETE",
    "DESCRIBE",
    "DROP",
    "EXIT",
    "EXPAND",
    "EXPLAIN ANALYZE SELECT",
    "EXPLAIN SELECT",
    "FORMAT",
    "GRANT",
    "HELP",
    "INSERT INTO",
    "LIST PERMISSIONS",
    "LIST ROLES",
    "LOGIN",
    "PAGING",
    "QUIT",
    "REVOKE",
    "SELECT",
    "SERIAL CONSISTENCY",
    "SHOW HOST",
    "SHOW VERSION",
    "SOURCE",
    "TRACING",
    "TRUNCATE",
    "UPDATE",
    "USE",
];

/// Words that stand inside of statements.
const KEYWORDS: [&str; 52] = [
    "ALLOW FILTERING",
    "AND",
    "APPLY BATCH",
    "AS",
    "ASC",
    "ASCII",
    "BIGINT",
    "BLOB",
    "BOOLEAN",
    "BY",
    "CAST(",
    "CLUSTERING ORDER BY",
    "CONTAINS",
    "DATE",
    "DECIMAL",
    "DESC",
    "DISTINCT",
    "DOUBLE",
    "FLOAT",
    "FROM",
    "FROZEN",
    "GROUP BY",
    "IF EXISTS",
    "IF NOT EXISTS",
    "IN",
    "INET",
    "INT",
    "JSON",
    "LIMIT",
    "LIST",
    "MAP",
    "MAXWRITETIME(",
    "NULL",
    "ORDER BY",
    "PER PARTITION LIMIT",
    "PRIMARY KEY",
    "SET",
    "STATIC",
    "TEXT",
    "TIMESTAMP",
    "TIMEUUID",
    "TTL(",
    "TUPLE",
    "USING TIMESTAMP",
    "USING TTL",
    "UUID",
    "VALUES",
    "VARINT",
    "VECTOR",
    "WHERE",
    "WITH",
    "WRITETIME(",
];

const OBJECTS: [&str; 12] = [
    "AGGREGATE",
    "CUSTOM INDEX",
    "FUNCTION",
    "INDEX",
    "KEYSPACE",
    "MATERIALIZED VIEW",
    "OR REPLACE FUNCTION",
    "ROLE",
    "TABLE",
    "TYPE",
    "USER",
    "IF EXISTS",
];

const DESCRIBED: [&str; 14] = [
    "AGGREGATE",
    "AGGREGATES",
    "CLUSTER",
    "FULL SCHEMA",
    "FUNCTION",
    "FUNCTIONS",
    "INDEX",
    "KEYSPACE",
    "KEYSPACES",
    "MATERIALIZED VIEW",
    "SCHEMA",
    "TABLE",
    "TABLES",
    "TYPE",
];

const LEVELS: [&str; 11] = [
    "ALL",
    "ANY",
    "EACH_QUORUM",
    "LOCAL_ONE",
    "LOCAL_QUORUM",
    "LOCAL_SERIAL",
    "ONE",
    "QUORUM",
    "SERIAL",
    "THREE",
    "TWO",
];

/// Words that may replace the word at the cursor.
#[derive(Debug, PartialEq, Eq)]
pub struct Completions {
    /// Where that word begins; it ends at the cursor.
    pub start: usize,
    /// The words, in order.
    pub words: Vec<String>,
}

/// The words that may stand at the cursor.
pub fn complete(text: &str, cursor: usize, catalog: &Catalog) -> Completions {
    let nothing = Completions {
        start: cursor,
        words: Vec::new(),
    };
    let (Some(before), Some(after)) = (text.get(..cursor), text.get(cursor..)) else {
        return nothing;
    };
    let begin = last_statement(before);
    let mut pieces: Vec<(Class, &str)> = outline(&before[begin..])
        .filter(|piece| !matches!(piece.class, Class::Space | Class::Comment))
        .filter_map(|piece| Some((piece.class, before[begin..].get(piece.range)?)))
        .collect();
    // A word that ends at the cursor is the one to complete.
    let typed = match pieces.last() {
        Some((Class::Name | Class::Keyword | Class::QuotedName, word)) if before.ends_with(word) => *word,
        Some((Class::Unfinished, word)) if word.starts_with('"') => *word,
        Some((Class::Unfinished, _)) => return nothing,
        _ => "",
    };
    if !typed.is_empty() {
        pieces.pop();
    }
    let rest = &after[..after.find(';').unwrap_or(after.len())];
    let place = CursorContext {
        pieces: &pieces,
        whole: format!("{}{rest}", &before[begin..]),
        catalog,
    };
    let typed_name = unquote(typed.trim_end_matches('"')).replace('"', "");
    let mut words: Vec<String> = place
        .candidates()
        .into_iter()
        .filter(|word| fits(word, typed, &typed_name))
        .map(|word| in_case_of(word, typed))
        .collect();
    words.dedup();
    Completions {
        start: cursor - typed.len(),
        words,
    }
}

/// Where the statement at the end of the text begins.
fn last_statement(text: &str) -> usize {
    let mut begin = 0;
    while let Next::Statement { end, .. } = next_statement(&text[begin..]) {
        begin += end;
    }
    begin
}

/// A candidate.
enum Word {
    Keyword(&'static str),
    /// A native function.
    Function(&'static str),
    Name {
        name: String,
        suffix: &'static str,
    },
}

fn fits(word: &Word, typed: &str, typed_name: &str) -> bool {
    match word {
        Word::Keyword(keyword) => {
            keyword.len() >= typed.len()
                && keyword.as_bytes()[..typed.len()].eq_ignore_ascii_case(typed.as_bytes())
        }
        // There are many: they are offered for a word that was begun.
        Word::Function(name) => !typed.is_empty() && name.starts_with(&typed.to_lowercase()),
        Word::Name { name, .. } if typed.starts_with('"') => name.starts_with(typed_name),
        Word::Name { name, .. } => name.to_lowercase().starts_with(&typed.to_lowercase()),
    }
}

/// Keywords and native functions in the case of what was typed; names in quotes where they need them.
fn in_case_of(word: Word, typed: &str) -> String {
    let is_lower = typed.chars().next().is_some_and(char::is_lowercase);
    match word {
        Word::Keyword(keyword) if is_lower => keyword.to_lowercase(),
        Word::Keyword(keyword) => keyword.to_owned(),
        Word::Function(name) if is_lower => format!("{name}("),
        Word::Function(name) => format!("{}(", name.to_uppercase()),
        Word::Name { name, suffix } => format!("{}{suffix}", quote_name(&name)),
    }
}

/// The place of the cursor.
struct CursorContext<'a> {
    /// The words before it, in its statement.
    pieces: &'a [(Class, &'a str)],
    /// The whole statement.
    whole: String,
    catalog: &'a Catalog,
}

impl CursorContext<'_> {
    fn before(&self, back: usize) -> &str {
        let index = self.pieces.len().checked_sub(back);
        index
            .and_then(|index| self.pieces.get(index))
            .map_or("", |(_, word)| *word)
    }

    fn candidates(&self) -> Vec<Word> {
        let previous = self.before(1).to_ascii_lowercase();
        if self.pieces.is_empty() {
            return keywords(&BEGINNINGS);
        }
        if previous == "." {
            return self.members(&unquoted_name(self.before(2)));
        }
        match previous.as_str() {
            "from" | "into" | "update" | "table" | "truncate" | "on" | "copy" | "view" => self.tables(),
            "use" | "keyspace" => self.keyspaces(""),
            "type" => self.types(),
            "create" | "alter" | "drop" => keywords(&OBJECTS),
            "consistency" => keywords(&LEVELS),
            "tracing" | "expand" | "paging" => keywords(&["OFF", "ON"]),
            "format" => keywords(&["arrow", "csv", "json", "parquet", "table", "vertical"]),
            "show" => keywords(&["HOST", "SESSION", "VERSION"]),
            "describe" | "desc" if self.pieces.len() == 1 => {
                let mut words = keywords(&DESCRIBED);
                words.extend(self.tables());
                words
            }
            "d" if self.pieces.len() == 2 && self.before(2) == "\\" => self.tables(),
            _ => {
                let mut words = self.columns();
                words.extend(keywords(&KEYWORDS));
                words.extend(FUNCTION_NAMES.map(Word::Function));
                words
            }
        }
    }

    fn keyspaces(&self, suffix: &'static str) -> Vec<Word> {
        names(self.catalog.keyspaces.keys(), suffix)
    }

    /// Tables of the current keyspace, and keyspaces with a point.
    fn tables(&self) -> Vec<Word> {
        let current = self.catalog.names(None);
        let mut words = current.map_or_else(Vec::new, |current| names(current.tables.keys(), ""));
        words.extend(self.keyspaces("."));
        words
    }

    fn types(&self) -> Vec<Word> {
        let current = self.catalog.names(None);
        let mut words = current.map_or_else(Vec::new, |current| names(current.types.iter(), ""));
        words.extend(self.keyspaces("."));
        words
    }

    /// The names in a keyspace.
    fn members(&self, keyspace: &str) -> Vec<Word> {
        let Some(found) = self.catalog.names(Some(keyspace)) else {
            return Vec::new();
        };
        let mut words = names(found.tables.keys(), "");
        words.extend(names(found.types.iter(), ""));
        words.extend(names(found.functions.iter(), "("));
        words
    }

    /// The columns of the table of the statement, and the functions of the keyspace.
    fn columns(&self) -> Vec<Word> {
        let pieces: Vec<(Class, &str)> = outline(&self.whole)
            .filter(|piece| !matches!(piece.class, Class::Space | Class::Comment))
            .filter_map(|piece| Some((piece.class, self.whole.get(piece.range)?)))
            .collect();
        let opens = |word: &str| {
            ["from", "into", "update", "table", "on", "copy"].contains(&word.to_ascii_lowercase().as_str())
        };
        let at = pieces.iter().position(|(_, word)| opens(word));
        let word = |ahead: usize| {
            let piece = at.and_then(|at| pieces.get(at + ahead));
            piece.map_or("", |(_, word)| *word)
        };
        let (keyspace, table) = match word(2) {
            "." => (Some(unquoted_name(word(1))), unquoted_name(word(3))),
            _ => (None, unquoted_name(word(1))),
        };
        let Some(found) = self.catalog.names(keyspace.as_deref()) else {
            return Vec::new();
        };
        let columns = found.tables.get(&table);
        let mut words = columns.map_or_else(Vec::new, |columns| names(columns.iter(), ""));
        words.extend(names(found.functions.iter(), "("));
        words
    }
}

fn keywords(words: &[&'static str]) -> Vec<Word> {
    words.iter().map(|word| Word::Keyword(word)).collect()
}

fn names<'a>(names: impl Iterator<Item = &'a String>, suffix: &'static str) -> Vec<Word> {
    names
        .map(|name| Word::Name {
            name: name.clone(),
            suffix,
        })
        .collect()
}

/// The name that a word of CQL means.
fn unquoted_name(word: &str) -> String {
    match word.starts_with('"') {
        true => unquote(word),
        false => word.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Names;

    fn catalog() -> Catalog {
        let mut music = Names::default();
        let columns = ["artist", "id", "Title"].map(str::to_owned).to_vec();
        music.tables.insert("songs".to_owned(), columns);
        music.types.insert("label".to_owned());
        music.functions.insert("maxim".to_owned());
        let mut catalog = Catalog::default();
        catalog.keyspaces.insert("music".to_owned(), music);
        catalog.keyspaces.insert("system".to_owned(), Names::default());
        catalog.current = Some("music".to_owned());
        catalog
    }

    /// The words at the `|` of a text.
    fn words(text: &str) -> Vec<String> {
        let cursor = text.find('|').unwrap();
        complete(&text.replace('|', ""), cursor, &catalog()).words
    }

    #[test]
    fn names_of_the_schema_stand_where_they_may() {
        assert_eq!(words("SELECT * FROM so|"), ["songs"]);
        assert_eq!(words("SELECT * FROM sy|"), ["system."]);
        assert_eq!(
            words("select 1; SELECT * FROM music.|"),
            ["songs", "label", "maxim("]
        );
        assert_eq!(words("USE mu|"), ["music"]);
        assert_eq!(words("INSERT INTO songs (id, ar|"), ["artist"]);
        assert_eq!(
            words("UPDATE music.songs SET ti|")[..3],
            ["\"Title\"", "TIMESTAMP", "TIMEUUID"].map(|word| match word {
                "\"Title\"" => word.to_owned(),
                keyword => keyword.to_lowercase(),
            })
        );
        assert_eq!(words("SELECT ar| FROM songs WHERE id = 1"), ["artist"]);
        assert_eq!(words("SELECT \"Ti| FROM songs"), [""; 0]);
        assert_eq!(words("DESCRIBE TABLE so|"), ["songs"]);
        assert_eq!(words("\\d so|"), ["songs"]);
    }

    #[test]
    fn functions_of_the_keyspace_and_native_ones_are_completed() {
        assert_eq!(
            words("SELECT max| FROM songs"),
            ["maxim(", "maxwritetime(", "max(", "max_timeuuid("]
        );
        assert_eq!(words("SELECT music.ma|"), ["maxim("]);
        assert_eq!(words("SELECT MAX_|"), ["MAX_TIMEUUID("]);
        assert_eq!(words("SELECT maxi|"), ["maxim("]);
        assert!(!words("SELECT | FROM songs").contains(&"ABS(".to_owned()));
    }

    #[test]
    fn words_keep_the_case_of_what_was_typed() {
        assert_eq!(words("sel|"), ["select"]);
        assert_eq!(words("SEL|"), ["SELECT"]);
        assert_eq!(
            words("consistency loc|"),
            ["local_one", "local_quorum", "local_serial"]
        );
        assert_eq!(words("SELECT 'so|"), [""; 0]);
    }

    #[test]
    fn the_word_at_the_cursor_is_replaced() {
        let found = complete("SELECT * FROM \"so", 17, &catalog());
        assert_eq!((found.start, found.words), (14, vec!["songs".to_owned()]));
    }
}
