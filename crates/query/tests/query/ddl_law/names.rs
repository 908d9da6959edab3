//! Names and types of random schema statements, at and beyond each limit.

use super::statements::Statements;

const SCALARS: [&str; 24] = [
    "ascii",
    "bigint",
    "blob",
    "boolean",
    "counter",
    "date",
    "decimal",
    "double",
    "duration",
    "float",
    "inet",
    "int",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timeuuid",
    "tinyint",
    "uuid",
    "varchar",
    "varint",
    "empty",
    "INT",
    "nosuchtype",
];

const CLASSES: [&str; 46] = [
    "FooType",
    "DateType",
    "LegacyTimeUUIDType",
    "LexicalUUIDType",
    "PartitionerDefinedOrder(x)",
    "PartitionerDefinedOrder(RandomPartitioner)",
    "PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner)",
    "PartitionerDefinedOrder",
    "PartitionerDefinedOrder(RandomPartitioner:UTF8Type)",
    "CompositeType(UTF8Type,Int32Type)",
    "CompositeType(FooType)",
    "CompositeType",
    "CompositeType()",
    "DynamicCompositeType",
    "DynamicCompositeType(a=>UTF8Type)",
    "DynamicCompositeType(a=>UTF8Type, b => Int32Type)",
    "DynamicCompositeType(ab=>UTF8Type)",
    "DynamicCompositeType(a=>FooType)",
    "EmptyType",
    "ReversedType(Int32Type)",
    "ReversedType(FooType)",
    "ReversedType(ReversedType(Int32Type))",
    "FrozenType(ListType(Int32Type))",
    "FrozenType(FooType)",
    "FrozenType(Int32Type)",
    "ListType(Int32Type)",
    "ListType(FooType)",
    "ListType(LexicalUUIDType)",
    "ListType(ListType(Int32Type))",
    "ListType(CounterColumnType)",
    "SetType(DurationType)",
    "MapType(DurationType,Int32Type)",
    "MapType(Int32Type)",
    "TupleType(Int32Type,FooType)",
    "TupleType()",
    "TupleType(Int32Type,ListType(UTF8Type))",
    "VectorType(FloatType , 3)",
    "VectorType(FooType, 3)",
    "VectorType(FloatType,0)",
    "UserType(a,61,62:Int32Type)",
    "UserType(zz,61,62:Int32Type)",
    "CounterColumnType",
    "Int32Type()",
    "int32type",
    "com.example.Odd(a,b)",
    "UTF8Type ",
];

pub(super) const ODD_NAMES: [&str; 26] = [
    "int",
    "text",
    "empty",
    "counter",
    "list",
    "map",
    "set",
    "tuple",
    "frozen",
    "vector",
    "byte",
    "timestamp",
    "Int",
    "a b",
    "with\"quote",
    "it's",
    "a.b",
    "a/b",
    "..",
    "select",
    "\u{e9}t\u{e9}",
    "\u{1F600}",
    "1a",
    "a\u{0}b",
    "line\nfeed",
    "<int>",
];

impl Statements {
    /// A new name, usually a simple one.
    pub(super) fn name(&mut self) -> String {
        self.made += 1;
        match self.random.below(16) {
            0 => quoted(self.pick(&ODD_NAMES)),
            1 => {
                let lengths = [
                    47_usize, 48, 49, 199, 200, 201, 202, 203, 221, 222, 223, 234, 235, 254, 255, 256, 1000,
                ];
                let len = self.one_of(&lengths).unwrap();
                let mut name = format!("n{}", self.made);
                name.push_str(&"x".repeat(len - name.len()));
                name
            }
            2 if self.random.one_in(12) => {
                "y".repeat(65_534 + usize::try_from(self.random.below(4)).unwrap())
            }
            _ => format!("n{}", self.made),
        }
    }

    pub(super) fn type_name(&mut self, depth: u32, user_types: &[String]) -> String {
        let inner = |this: &mut Self| this.type_name(depth + 1, user_types);
        match self.random.below(if depth > 3 { 8 } else { 20 }) {
            0..6 => self.pick(&SCALARS).to_owned(),
            6 => match self.one_of(user_types) {
                Some(name) if self.random.one_in(3) => name,
                Some(name) => format!("frozen<{name}>"),
                None => "int".to_owned(),
            },
            7 => {
                let package = match self.random.one_in(2) {
                    true => "org.apache.cassandra.db.marshal.",
                    false => "",
                };
                format!("'{package}{}'", self.pick(&CLASSES))
            }
            8 | 9 => format!("list<{}>", inner(self)),
            10 => format!("frozen<list<{}>>", inner(self)),
            11 => format!("set<{}>", inner(self)),
            12 => format!("map<{}, {}>", inner(self), inner(self)),
            13 => format!("frozen<{}>", inner(self)),
            14 => format!("tuple<{}, {}>", inner(self), inner(self)),
            15 => {
                let dimension = self.pick(&["1", "3", "0", "8192", "8193", "2147483647", "2147483648", "-1"]);
                format!("vector<{}, {dimension}>", inner(self))
            }
            16 => {
                let levels = [30_usize, 31, 32, 33, 40, 62, 63, 64, 65, 127, 128, 129, 400];
                let levels = self.one_of(&levels).unwrap();
                let (open, close) = *self
                    .one_of(&[
                        &("frozen<list<", ">>"),
                        &("tuple<", ">"),
                        &("frozen<", ">"),
                        &("list<", ">"),
                    ])
                    .unwrap();
                format!("{}int{}", open.repeat(levels), close.repeat(levels))
            }
            17 => {
                let levels = usize::try_from(60 + self.random.below(200)).unwrap();
                let package = "org.apache.cassandra.db.marshal.";
                format!(
                    "'{}Int32Type{}'",
                    format!("{package}FrozenType({package}ListType(").repeat(levels),
                    "))".repeat(levels)
                )
            }
            _ => "int".to_owned(),
        }
    }
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
