//! Random tables, writes and SELECTs, as CQL. Values come from small ranges, so that keys and times collide.

use ilion_rows::random::Dice;

/// A random table `ks.t`.
pub struct Table {
    pub create: String,
    /// Indexes to create.
    pub indexes: Vec<String>,
    keys: usize,
    clusterings: usize,
    has_static: bool,
    /// The column that comes and goes, if it is there. It never comes back under its name: what is written to it is older than its
    /// drop.
    added: Option<String>,
    alterations: u32,
}

const TYPES: [&str; 2] = ["int", "text"];

fn value(dice: &mut Dice, column: usize, most: usize) -> String {
    let number = dice.below(most);
    match TYPES[column % TYPES.len()] {
        "int" => number.to_string(),
        _ => format!("'{}'", ["a", "ab", "b", "", "zz", "m"][number % 6]),
    }
}

fn one(dice: &mut Dice, choices: &[&str]) -> String {
    (*dice.pick(choices)).to_owned()
}

impl Table {
    pub fn random(dice: &mut Dice) -> Self {
        let keys = 1 + dice.below(2);
        let clusterings = dice.below(4);
        let has_static = clusterings > 0 && !dice.one_in(3);
        let mut columns: Vec<String> = Vec::new();
        columns.extend((0..keys).map(|at| format!("k{at} {}", TYPES[at % 2])));
        columns.extend((0..clusterings).map(|at| format!("c{at} {}", TYPES[at % 2])));
        if has_static {
            columns.push("s text static".to_owned());
            columns.push("ss set<int> static".to_owned());
        }
        columns.extend(["a int", "b text", "l list<int>", "m map<int, text>"].map(str::to_owned));
        let names = |letter, count| -> Vec<String> { (0..count).map(|at| format!("{letter}{at}")).collect() };
        let mut primary = vec![format!("({})", names("k", keys).join(", "))];
        primary.extend(names("c", clusterings));
        let mut create = format!(
            "CREATE TABLE ks.t ({}, PRIMARY KEY ({}))",
            columns.join(", "),
            primary.join(", ")
        );
        if clusterings > 0 {
            let orders: Vec<String> = names("c", clusterings)
                .into_iter()
                .map(|name| format!("{name} {}", one(dice, &["ASC", "DESC"])))
                .collect();
            create += &format!(" WITH CLUSTERING ORDER BY ({})", orders.join(", "));
        }
        let mut indexes = Vec::new();
        match dice.below(4) {
            0 => indexes.push("CREATE INDEX t_a ON ks.t (a)".to_owned()),
            1 => {
                indexes.push("CREATE INDEX t_a ON ks.t (a) USING 'sai'".to_owned());
                indexes.push("CREATE INDEX t_b ON ks.t (b) USING 'sai'".to_owned());
            }
            2 if has_static => {
                indexes.push("CREATE INDEX t_s ON ks.t (s)".to_owned());
                indexes.push("CREATE INDEX t_m ON ks.t (values(m))".to_owned());
            }
            _ => {}
        }
        Self {
            create,
            indexes,
            keys,
            clusterings,
            has_static,
            added: None,
            alterations: 0,
        }
    }

    /// Adds a column, or drops it.
    pub fn alter(&mut self) -> String {
        if let Some(name) = self.added.take() {
            return format!("ALTER TABLE ks.t DROP {name}");
        }
        self.alterations += 1;
        let name = format!("d{}", self.alterations);
        let alteration = format!("ALTER TABLE ks.t ADD {name} int");
        self.added = Some(name);
        alteration
    }

    fn key(&self, dice: &mut Dice) -> Vec<String> {
        (0..self.keys)
            .map(|at| format!("k{at} = {}", value(dice, at, 8)))
            .collect()
    }

    fn row(&self, dice: &mut Dice) -> Vec<String> {
        let mut row = self.key(dice);
        row.extend((0..self.clusterings).map(|at| format!("c{at} = {}", value(dice, at, 6))));
        row
    }

    fn assignment(&self, dice: &mut Dice) -> String {
        match dice.below(9) {
            0 => "a = null".to_owned(),
            1 => format!("b = {}", value(dice, 1, 6)),
            2 => format!("l = l + [{}]", dice.below(5)),
            3 => format!("l = [{}, {}]", dice.below(5), dice.below(5)),
            4 => format!("m[{}] = {}", dice.below(4), value(dice, 1, 6)),
            5 => format!("m = m - {{{}}}", dice.below(4)),
            6 => format!("m = {{{}: 'x', 7: 'y'}}", dice.below(4)),
            7 => format!("{} = {}", self.added.as_deref().unwrap_or("a"), dice.below(4)),
            _ => format!("a = {}", dice.below(5)),
        }
    }

    /// A random write.
    pub fn write(&self, dice: &mut Dice) -> String {
        let ttl = match dice.one_in(4) {
            true => format!(" USING TTL {}", 1 + dice.below(100)),
            false => String::new(),
        };
        let row = self.row(dice).join(" AND ");
        let key = self.key(dice).join(" AND ");
        match dice.below(20) {
            0 => format!("DELETE FROM ks.t WHERE {key}"),
            1 if self.clusterings > 0 => {
                let from = value(dice, 0, 6);
                let to = value(dice, 0, 6);
                let (above, below) = (one(dice, &[">", ">="]), one(dice, &["<", "<="]));
                format!("DELETE FROM ks.t WHERE {key} AND c0 {above} {from} AND c0 {below} {to}")
            }
            2 if self.clusterings > 1 => {
                format!("DELETE FROM ks.t WHERE {key} AND c0 = {}", value(dice, 0, 6))
            }
            3 | 4 => format!("DELETE FROM ks.t WHERE {row}"),
            5 => format!(
                "DELETE {} FROM ks.t WHERE {row}",
                one(dice, &["a", "b", "l", "m", "m[1]"])
            ),
            6 | 7 if self.has_static => {
                let set = match dice.one_in(3) {
                    true => format!("ss = ss + {{{}}}", dice.below(4)),
                    false => format!("s = {}", value(dice, 1, 6)),
                };
                format!("UPDATE ks.t{ttl} SET {set} WHERE {key}")
            }
            8..=13 => {
                let names: Vec<String> = self.row(dice);
                let (columns, values): (Vec<&str>, Vec<&str>) =
                    names.iter().filter_map(|pair| pair.split_once(" = ")).unzip();
                let (a, b) = (dice.below(5), value(dice, 1, 6));
                format!(
                    "INSERT INTO ks.t ({}, a, b) VALUES ({}, {a}, {b}){ttl}",
                    columns.join(", "),
                    values.join(", ")
                )
            }
            _ => {
                let (one, other) = (self.assignment(dice), self.assignment(dice));
                let column = |set: &str| set.split(['=', '[']).next().unwrap_or_default().trim().to_owned();
                match column(&one) == column(&other) {
                    true => format!("UPDATE ks.t{ttl} SET {one} WHERE {row}"),
                    false => format!("UPDATE ks.t{ttl} SET {one}, {other} WHERE {row}"),
                }
            }
        }
    }

    fn partitions(&self, dice: &mut Dice) -> Vec<String> {
        let names: Vec<String> = (0..self.keys).map(|at| format!("k{at}")).collect();
        let token = format!("token({})", names.join(", "));
        let bound = |dice: &mut Dice| match dice.one_in(4) {
            true => {
                let values: Vec<String> = (0..self.keys).map(|at| value(dice, at, 8)).collect();
                format!("token({})", values.join(", "))
            }
            false => dice.next_u64().cast_signed().to_string(),
        };
        match dice.below(10) {
            0..=2 => Vec::new(),
            3 | 4 => self.key(dice),
            5 | 6 => {
                let mut key = self.key(dice);
                let last = self.keys - 1;
                let values: Vec<String> = (0..1 + dice.below(5)).map(|_| value(dice, last, 8)).collect();
                key[last] = format!("k{last} IN ({})", values.join(", "));
                key
            }
            7 => vec![format!(
                "{token} {} {}",
                one(dice, &[">", ">=", "<", "<="]),
                bound(dice)
            )],
            _ => {
                let (one, other) = (bound(dice), bound(dice));
                vec![format!("{token} > {one}"), format!("{token} <= {other}")]
            }
        }
    }

    fn rows(&self, dice: &mut Dice) -> Vec<String> {
        if self.clusterings == 0 || dice.one_in(2) {
            return Vec::new();
        }
        let fixed = dice.below(self.clusterings);
        let mut rows: Vec<String> = (0..fixed)
            .map(|at| format!("c{at} = {}", value(dice, at, 6)))
            .collect();
        let name = format!("c{fixed}");
        match dice.below(5) {
            0 => rows.push(format!("{name} = {}", value(dice, fixed, 6))),
            1 => {
                let values: Vec<String> = (0..1 + dice.below(4)).map(|_| value(dice, fixed, 6)).collect();
                rows.push(format!("{name} IN ({})", values.join(", ")));
            }
            2 => {
                rows.push(format!("{name} > {}", value(dice, fixed, 6)));
                rows.push(format!("{name} <= {}", value(dice, fixed, 6)));
            }
            _ => rows.push(format!(
                "{name} {} {}",
                one(dice, &[">", ">=", "<", "<="]),
                value(dice, fixed, 6)
            )),
        }
        rows
    }

    fn filters(&self, dice: &mut Dice) -> Vec<String> {
        match dice.below(9) {
            0 | 1 => vec![format!("a = {}", dice.below(5))],
            2 => vec![format!("b = {}", value(dice, 1, 6))],
            3 => vec![
                format!("a >= {}", dice.below(5)),
                format!("b = {}", value(dice, 1, 6)),
            ],
            4 if self.has_static => vec![format!("s = {}", value(dice, 1, 6))],
            5 => vec![format!("m CONTAINS {}", value(dice, 1, 6))],
            6 => vec![format!(
                "{} = {}",
                self.added.as_deref().unwrap_or("a"),
                dice.below(4)
            )],
            _ => Vec::new(),
        }
    }

    fn selection(&self, dice: &mut Dice) -> (String, &'static str) {
        let key = if self.keys == 1 { "k0" } else { "k0, k1" };
        let by_key = if self.keys == 1 {
            " GROUP BY k0"
        } else {
            " GROUP BY k0, k1"
        };
        let statics = if self.has_static { ", s, ss" } else { "" };
        match dice.below(12) {
            0 => ("count(*)".to_owned(), ""),
            1 => ("sum(a), max(b), count(a)".to_owned(), ""),
            2 => (format!("{key}, count(*), max(a)"), by_key),
            3 if self.clusterings > 0 => (format!("DISTINCT {key}{statics}"), ""),
            4 => ("a".to_owned(), ""),
            5 => ("b, writetime(a), ttl(a)".to_owned(), ""),
            6 => (format!("{key}, m, l{statics}"), ""),
            7 => ("m[1], a".to_owned(), ""),
            _ => ("*".to_owned(), ""),
        }
    }

    /// A random SELECT. Some are refused.
    pub fn select(&self, dice: &mut Dice) -> String {
        let (selection, group) = self.selection(dice);
        let mut conditions = self.partitions(dice);
        let is_by_key = conditions.first().is_some_and(|first| first.starts_with("k0"));
        if is_by_key || dice.one_in(4) {
            conditions.extend(self.rows(dice));
        }
        if dice.one_in(2) {
            conditions.extend(self.filters(dice));
        }
        let mut text = format!("SELECT {selection} FROM ks.t");
        if !conditions.is_empty() {
            text += &format!(" WHERE {}", conditions.join(" AND "));
        }
        text += group;
        if is_by_key && self.clusterings > 0 && dice.one_in(2) {
            let order = one(dice, &["ASC", "DESC"]);
            text += &format!(" ORDER BY c0 {order}");
        }
        if dice.one_in(5) {
            text += &format!(" PER PARTITION LIMIT {}", 1 + dice.below(3));
        }
        if dice.one_in(3) {
            text += &format!(" LIMIT {}", 1 + dice.below(12));
        }
        if !dice.one_in(8) {
            text += " ALLOW FILTERING";
        }
        text
    }
}
