//! Texts of HELP.

/// Each topic with its text; the first line says what the command does.
const TOPICS: [(&str, &str); 15] = [
    (
        "CAPTURE",
        "CAPTURE 'file'   appends results to a file instead of showing them\n\
         CAPTURE OFF      shows results again\n\
         CAPTURE          tells the file",
    ),
    ("CLEAR", "CLEAR            clears the screen (also CLS)"),
    (
        "CONSISTENCY",
        "CONSISTENCY level   sets the consistency of reads and writes: ANY, ONE, TWO, THREE, QUORUM, ALL, LOCAL_ONE,\n\
         \x20                   LOCAL_QUORUM, EACH_QUORUM; SERIAL and LOCAL_SERIAL for SELECT only\n\
         CONSISTENCY         tells it",
    ),
    (
        "COPY",
        "COPY [keyspace.]table [(column, ..)] TO 'file' | STDOUT [WITH option = value AND ..];\n\
         COPY [keyspace.]table [(column, ..)] FROM 'file' [WITH option = value AND ..];\n\
         Both: HEADER, DELIMITER, QUOTE, ESCAPE, NULL, RESUME, FORMAT. TO: PAGESIZE. FROM: SKIPROWS, MAXROWS, MAXPARSEERRORS, ERRFILE, TTL, MAXREQUESTS, MAXBATCHSIZE",
    ),
    (
        "DESCRIBE",
        "DESCRIBE KEYSPACES | TABLES | TYPES | FUNCTIONS | AGGREGATES | CLUSTER   lists\n\
         DESCRIBE [FULL] SCHEMA                                               all statements that make the schema\n\
         DESCRIBE KEYSPACE | TABLE | TYPE | FUNCTION | AGGREGATE | INDEX | MATERIALIZED VIEW name\n\
         \x20                                                                    the statements that make it\n\
         DESCRIBE name                                                        any of these",
    ),
    (
        "EXIT",
        "EXIT             leaves the shell (also QUIT, \\q and Ctrl-D)",
    ),
    (
        "EXPAND",
        "EXPAND ON | OFF  prints one value a line, or a table (\\x switches over)\nEXPAND           tells which",
    ),
    (
        "FORMAT",
        "FORMAT table | vertical | json | csv | parquet | arrow   sets how rows are printed\n\
         FORMAT                                                   tells how",
    ),
    (
        "HELP",
        "HELP topic       tells about a command; HELP alone lists them",
    ),
    (
        "LOGIN",
        "LOGIN role ['password']   continues as another role; without a password it is asked for",
    ),
    (
        "PAGING",
        "PAGING rows      prints so many rows at once\n\
         PAGING ON | OFF  switches pages on or off\n\
         PAGING           tells",
    ),
    (
        "SERIAL",
        "SERIAL CONSISTENCY level   sets the consistency of conditions: SERIAL or LOCAL_SERIAL\n\
         SERIAL CONSISTENCY         tells it",
    ),
    (
        "SHOW",
        "SHOW VERSION     versions of shell and server\n\
         SHOW HOST        where the shell is connected\n\
         SHOW SESSION id  prints a trace",
    ),
    (
        "SOURCE",
        "SOURCE 'file'    executes the statements of a file; errors do not end it (also \\i file)",
    ),
    (
        "TRACING",
        "TRACING ON | OFF traces requests and prints the traces\nTRACING          tells whether",
    ),
];

const SHORTCUTS: &str = "\
Shortcuts:
  \\l, \\dk [keyspace]   keyspaces          \\d [name], \\dt [table]   tables, or what makes one
  \\dT [type]           user types         \\df, \\da [name]          functions, aggregates
  \\di index            an index           \\x                       one value a line, or a table
  \\i file              SOURCE             \\q                       EXIT";

/// The text about a topic, or the list of topics; `None` if there is no such topic.
pub fn about(topic: Option<&str>) -> Option<String> {
    let Some(topic) = topic else {
        let names: Vec<&str> = TOPICS.iter().map(|(name, _)| *name).collect();
        return Some(format!(
            "Commands of the shell, of which HELP name tells more:\n\
             \x20 {}\n\
             {SHORTCUTS}\n\
             All else is CQL; a statement ends with a semicolon.",
            names.join(", ")
        ));
    };
    let found = TOPICS.iter().find(|(name, _)| name.eq_ignore_ascii_case(topic));
    found.map(|(_, text)| (*text).to_owned())
}
