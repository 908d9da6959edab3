//! Scripts from the point of view of a function's author.

#![expect(clippy::unwrap_used, reason = "a mistake in a test is to stop it")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ilion_script::{CallBudget, Error, Limits, Script};
use ilion_types::{CqlType, UserType};

fn limits() -> Limits {
    Limits {
        instructions: 200_000,
        memory_bytes: 1 << 20,
        time: Duration::from_secs(60),
    }
}

fn call(script: &Script, arguments: &[Option<Bytes>]) -> Result<Option<Bytes>, Error> {
    script.call(arguments, &CallBudget::new(Duration::from_secs(600)))
}

/// Runs a body with arguments named `a`, `b`, ...; values are given and returned as CQL prints them.
fn run(
    arguments: &[(&CqlType, Option<&str>)],
    returns: &CqlType,
    body: &str,
) -> Result<Option<String>, Error> {
    let names = ["a", "b", "c"];
    let declared: Vec<(String, CqlType)> = names
        .iter()
        .zip(arguments)
        .map(|(name, (ty, _))| ((*name).to_owned(), (*ty).clone()))
        .collect();
    let script = Script::compile(&declared, returns, body, limits())?;
    let values: Vec<Option<Bytes>> = arguments
        .iter()
        .map(|(ty, text)| text.map(|text| ty.parse_plain(text).unwrap().into()))
        .collect();
    let first = call(&script, &values);
    assert_eq!(call(&script, &values), first, "a call left something behind");
    Ok(first?.map(|bytes| returns.print_literal(&bytes).unwrap()))
}

fn text(body: &str) -> String {
    run(&[], &CqlType::Text, body).unwrap().unwrap()
}

fn failure(body: &str) -> String {
    match run(&[], &CqlType::Text, body) {
        Err(Error::Failed(message)) => message,
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn a_script_computes_with_its_arguments() {
    let int = CqlType::Int;
    assert_eq!(
        run(&[(&int, Some("2")), (&int, Some("3"))], &int, "return a * b").unwrap(),
        Some("6".into())
    );
    assert_eq!(run(&[(&int, None)], &int, "return a").unwrap(), None);
    assert_eq!(
        run(&[(&int, None)], &int, "if a == nil then return 1 end").unwrap(),
        Some("1".into())
    );
}

#[test]
fn every_scalar_goes_there_and_back() {
    for (ty, literal) in [
        (CqlType::Ascii, "'x'"),
        (CqlType::Text, "'\u{e4}'"),
        (CqlType::BigInt, "9223372036854775807"),
        (CqlType::Blob, "0x00ff"),
        (CqlType::Boolean, "True"),
        (CqlType::Date, "'2026-11-21'"),
        (CqlType::Decimal, "1.50"),
        (CqlType::Double, "0.1"),
        (CqlType::Float, "0.1"),
        (CqlType::Inet, "'0:0:0:0:0:0:0:1'"),
        (CqlType::Int, "-5"),
        (CqlType::SmallInt, "-5"),
        (CqlType::TinyInt, "-5"),
        (CqlType::Time, "'12:00:00.000000001'"),
        (CqlType::Uuid, "0b0b0b0b-0000-4000-8000-000000000001"),
        (CqlType::TimeUuid, "0b0b0b0b-0000-1000-8000-000000000001"),
        (CqlType::Varint, "123456789012345678901234567890"),
        (CqlType::Duration, "1mo2d3ns"),
    ] {
        let plain = literal.trim_matches('\'');
        let back = run(&[(&ty, Some(plain))], &ty, "return a").unwrap().unwrap();
        assert_eq!(back.to_lowercase(), literal.to_lowercase(), "{ty}");
    }
}

#[test]
fn compound_values_are_tables() {
    let int = Arc::new(CqlType::Int);
    let list = CqlType::List {
        element: int.clone(),
        frozen: false,
    };
    let map = CqlType::Map {
        key: Arc::new(CqlType::Text),
        value: int.clone(),
        frozen: false,
    };
    let set = CqlType::Set {
        element: int.clone(),
        frozen: false,
    };
    let pair = CqlType::Tuple([CqlType::Int, CqlType::Text].into());
    let point = CqlType::Udt {
        definition: Arc::new(UserType {
            keyspace: "ks".into(),
            name: "point".into(),
            fields: vec![("x".into(), CqlType::Int), ("y".into(), CqlType::Int)],
        }),
        frozen: false,
    };
    let vector = CqlType::Vector {
        element: Arc::new(CqlType::Float),
        dimension: 2,
    };
    let shown = |ty: &CqlType, body: &str| run(&[], ty, body).unwrap().unwrap();
    assert_eq!(shown(&list, "return {3, 1}"), "[3, 1]");
    assert_eq!(shown(&set, "return {3, 1, 3}"), "{1, 3}");
    assert_eq!(shown(&map, "return {b = 1, a = 2}"), "{'a': 2, 'b': 1}");
    assert_eq!(shown(&pair, "return {nil, 'x'}"), "(null, 'x')");
    assert_eq!(shown(&point, "return {y = 2}"), "{x: null, y: 2}");
    assert_eq!(shown(&vector, "return {1, 2.5}"), "[1.0, 2.5]");
    let declared = [
        ("a".to_owned(), map.clone()),
        ("b".to_owned(), point),
        ("c".to_owned(), list),
    ];
    let body = "local s = a.x + b.x for _, v in ipairs(c) do s = s + v end return s";
    let script = Script::compile(&declared, &int, body, limits()).unwrap();
    let bytes = |ty: &CqlType, body: &str| {
        let script = Script::compile(&[], ty, body, limits()).unwrap();
        call(&script, &[]).unwrap()
    };
    let arguments = [
        bytes(&declared[0].1, "return {x = 1}"),
        bytes(&declared[1].1, "return {x = 10}"),
        bytes(&declared[2].1, "return {100, 200}"),
    ];
    assert_eq!(
        call(&script, &arguments).unwrap().unwrap()[..],
        311_i32.to_be_bytes()
    );
}

#[test]
fn what_is_no_value_of_the_type_is_refused() {
    assert_eq!(
        run(&[], &CqlType::TinyInt, "return 200").unwrap_err(),
        Error::Failed("it returned 200, which is not a value of type tinyint".into())
    );
    assert!(run(&[], &CqlType::Int, "return 1.5").is_err());
    assert_eq!(run(&[], &CqlType::Int, "return 4 / 2").unwrap(), Some("2".into()));
    assert!(run(&[], &CqlType::Int, "return {}").is_err());
    assert!(run(&[], &CqlType::Text, "return '\\xff'").is_err());
    assert!(run(&[], &CqlType::Ascii, "return '\u{e4}'").is_err());
}

#[test]
fn errors_tell_the_line_of_the_body() {
    assert_eq!(failure("local x = 1\nerror('no')"), "function:2: no");
    let Err(Error::Source(message)) = run(&[], &CqlType::Int, "return (") else {
        panic!("it compiled")
    };
    assert!(message.starts_with("function:1:"), "{message}");
    let end = [("end".to_owned(), CqlType::Int)];
    assert!(Script::compile(&end, &CqlType::Int, "return 1", limits()).is_err());
}

#[test]
fn nothing_outside_is_reached() {
    for name in [
        "io",
        "os",
        "debug",
        "package",
        "require",
        "load",
        "loadstring",
        "dofile",
        "loadfile",
        "pcall",
        "xpcall",
        "coroutine",
        "setmetatable",
        "getmetatable",
        "rawset",
        "collectgarbage",
        "print",
        "_G",
    ] {
        assert_eq!(text(&format!("return type({name})")), "'nil'", "{name}");
    }
    for name in ["math.random", "table.move", "string.dump"] {
        assert_eq!(text(&format!("return type({name})")), "'nil'", "{name}");
    }
}

#[test]
fn nothing_stays_for_the_next_call() {
    assert!(failure("x = 1").contains("use local variables"));
    assert!(failure("math.pi = 3").contains("use local variables"));
    assert!(failure("string.upper = nil").contains("use local variables"));
}

#[test]
fn an_environment_that_a_call_sets_is_gone_with_it() {
    let shown = "local before = type(pairs) _ENV = {pairs = 5} return before";
    let script = Script::compile(&[], &CqlType::Text, shown, limits()).unwrap();
    for _ in 0..3 {
        assert_eq!(call(&script, &[]).unwrap().unwrap()[..], *b"function");
    }
    let nested = "local before = type(pairs) local function f() _ENV = {} end f() return before";
    let script = Script::compile(&[], &CqlType::Text, nested, limits()).unwrap();
    for _ in 0..3 {
        assert_eq!(call(&script, &[]).unwrap().unwrap()[..], *b"function");
    }
}

#[test]
fn no_message_and_no_text_shows_an_address() {
    for value in [
        "{}",
        "print",
        "type",
        "function() end",
        "string",
        "('x').rep",
        "('').gmatch('', '')",
    ] {
        let shown = text(&format!("return tostring({value}) .. ('%s'):format({value})"));
        assert!(!shown.contains("0x"), "{shown}");
        for body in [
            format!("error({value})"),
            format!("error({value}, 2)"),
            format!("assert(false, {value})"),
            format!("assert(nil, {value})"),
            format!("return ('%p'):format({value})"),
            format!("return ('%d'):format({value})"),
            format!("return ('%q'):format({value})"),
            format!("string[{value}] = 1"),
            format!("_ENV[{value}] = 1"),
            format!("return 'x' .. ({value})"),
            format!("return ({value}) + 1"),
            format!("return ({value}) < ({value})"),
            format!("return ({value}).x.y"),
            format!("return table.concat({{{value}}})"),
            format!("table.sort({{{value}, {value}}})"),
            format!("return ('x'):gsub('x', function() return {value} end)"),
            format!("return ('x'):rep({value})"),
            format!("return {value}"),
        ] {
            if let Err(error) = run(&[], &CqlType::Text, &body) {
                let message = error.to_string();
                assert!(
                    !message.contains("0x") && !message.contains("library"),
                    "{body}: {message}"
                );
            }
        }
    }
    assert!(failure("error({})").contains("(error object is a table value)"));
    assert_eq!(failure("assert(false)"), "assertion failed!");
    assert_eq!(failure("assert(nil, 'why')"), "why");
    assert_eq!(failure("error('no', 0)"), "no");
    assert_eq!(
        failure("local function f() error('no', 2) end\n\nf()"),
        "function:3: no"
    );
    assert!(failure("error(('x'):rep(100000))").len() < 1100);
}

#[test]
fn lists_are_sorted_inserted_into_and_removed_from_as_the_manual_says() {
    for (body, expected) in [
        (
            "local t = {} for i = 1, 1000 do t[i] = (i * 7919) % 1009 end table.sort(t) for i = 2, 1000 do if t[i - 1] > t[i] then return i end end return #t",
            "1000",
        ),
        (
            "local t = {5, 3, 9, 1} table.sort(t, function(a, b) return a > b end) return table.concat(t, ' ')",
            "9 5 3 1",
        ),
        ("local t = {'b', 'a'} table.sort(t) return table.concat(t)", "ab"),
        ("local t = {} table.sort(t) return #t", "0"),
        (
            "local t = {1, 3} table.insert(t, 2, 2) table.insert(t, 4) return table.concat(t)",
            "1234",
        ),
        (
            "local t = {1, 2, 3} local x = table.remove(t, 1) return x .. table.concat(t)",
            "123",
        ),
        (
            "local t = {1, 2, 3} local x = table.remove(t) return x .. table.concat(t)",
            "312",
        ),
        ("return tostring(table.remove({}))", "nil"),
        (
            "local t = {} for w in ('a b c'):gmatch('%a', 3) do t[#t + 1] = w end return table.concat(t)",
            "bc",
        ),
        (
            "return ('%d %s %5.1f %s'):format(3, 'x', 2.5, {})",
            "3 x   2.5 table",
        ),
        (
            "return tostring(nil) .. tostring(1.5) .. tostring(true)",
            "nil1.5true",
        ),
        ("return assert('x')", "x"),
    ] {
        assert_eq!(
            text(&format!("local function r() {body} end return tostring(r())")),
            format!("'{expected}'"),
            "{body}"
        );
    }
    assert!(failure("table.insert({}, 5, 1)").contains("position out of bounds"));
    assert!(failure("table.insert({}, 1, 1, 1)").contains("wrong number of arguments"));
    assert!(failure("table.remove({1, 2}, 7)").contains("position out of bounds"));
    assert_eq!(
        failure("\ntable.insert(nil, 1)"),
        "function:2: bad argument #1 to 'insert' (table expected, got nil)"
    );
    assert!(failure("table.sort({1, 'x'})").contains("attempt to compare"));
}

#[test]
fn tables_that_share_one_another_are_not_returned_for_ever() {
    let tree = (0..30).fold(CqlType::Int, |element, _| CqlType::List {
        element: Arc::new(element),
        frozen: true,
    });
    let body = "local t = 1 for _ = 1, 30 do t = {t, t} end return t";
    assert!(run(&[], &tree, body).is_err());
    let texts = CqlType::List {
        element: Arc::new(CqlType::Text),
        frozen: false,
    };
    let body = "local s, t = ('x'):rep(500000), {} for i = 1, 1000 do t[i] = s end return t";
    assert!(run(&[], &texts, body).is_err());
    assert!(run(&[], &CqlType::Varint, "return ('9'):rep(900000)").is_err());
    assert!(run(&[], &CqlType::Varint, "return ('9'):rep(2000)").is_ok());
}

#[test]
fn a_body_that_would_take_long_to_compile_is_refused() {
    let body = "elseif x then ".repeat(100_000);
    let body = format!("local x if x then {body} end");
    let refused = Script::compile(&[], &CqlType::Int, &body, limits()).unwrap_err();
    assert!(refused.to_string().contains("the body has"), "{refused}");
}

#[test]
fn calls_of_a_statement_share_the_time_of_those_that_take_long() {
    let body = "local x = 0 for i = 1, 20000 do x = x + i end return 'x'";
    let script = Script::compile(&[], &CqlType::Text, body, limits()).unwrap();
    let budget = CallBudget::new(Duration::from_nanos(1));
    assert!(script.call(&[], &budget).is_err());
    let refused = script.call(&[], &budget).unwrap_err();
    assert!(
        refused.to_string().contains("the calls of this statement"),
        "{refused}"
    );
    let short = Script::compile(&[], &CqlType::Text, "return 'x'", limits()).unwrap();
    assert!(short.call(&[], &budget).is_ok());
}

#[test]
fn a_call_that_needs_more_than_most_gets_it() {
    let body = "local t = {} for i = 1, 40000 do t[i] = i end return tostring(#t)";
    let roomy = Limits {
        instructions: 1_000_000,
        memory_bytes: 4 << 20,
        ..limits()
    };
    let script = Script::compile(&[], &CqlType::Text, body, roomy).unwrap();
    for _ in 0..3 {
        assert_eq!(call(&script, &[]).unwrap().unwrap()[..], *b"40000");
    }
    assert_eq!(
        failure("local t = {} while true do t[#t + 1] = 1 end"),
        "it took more memory than it may"
    );
    assert_eq!(
        failure("while true do end"),
        "it took more than 200000 instructions"
    );
    let hurried = Limits {
        time: Duration::ZERO,
        ..limits()
    };
    let script = Script::compile(&[], &CqlType::Text, "while true do end", hurried).unwrap();
    assert_eq!(
        call(&script, &[]).unwrap_err().to_string(),
        "it ran longer than 0 ms"
    );
}

/// Statements on a table whose length is 2^62, because of its holes: a constructor reserves room for all of its keys, so that
/// none goes into the array part.
fn holes(statements: &str) -> String {
    let entries: Vec<String> = (0..63).map(|power| format!("[1 << {power}] = 1")).collect();
    format!("local t = {{{}}} {statements}", entries.join(", "))
}

#[test]
fn what_never_ends_is_ended() {
    for body in [
        "while true do end",
        "local s = 'x' for i = 1, 100 do s = s .. s end",
        "return ('x'):rep(1 << 40)",
        "local f; f = function() return f() end return f()",
        "local t = {} while true do t[#t + 1] = {} end",
        "return (('a'):rep(5000)):find(('.-'):rep(20) .. 'b')",
        "return (('()'):rep(300)):match('%b()' .. ('.*'):rep(8) .. 'x')",
        "return ('x'):rep(200000):gsub('', ('y'):rep(1000))",
        "for _ in ('x'):rep(200000):gmatch('.-.-.-y') do end",
        "table.sort({3, 2, 1}, function() while true do end end)",
        "return ('').rep('', 1 << 60, '')",
        &holes("table.insert(t, 1, 0)"),
        &holes("table.remove(t, 1)"),
        &holes("table.sort(t, tostring)"),
        "local s, t = ('x'):rep(200000), {} for i = 1, 3000 do t[i] = s end return ('%.0s'):rep(3000):format(table.unpack(t))",
        "return ('x'):rep(200000):find('[' .. ('y'):rep(200000) .. ']')",
        "local function f(x) return (x:gsub('.', f)) end return f('x')",
        "local f; f = function(x) return (x:gsub('.', f)) end return f('x')",
        "local function f() return 1 + f() end return f()",
    ] {
        let result = run(&[], &CqlType::Text, body);
        let is_harmless = body.contains("1 << 60");
        assert!(result.is_err() || is_harmless, "{body}: {result:?}");
    }
}

#[test]
fn patterns_mean_what_the_manual_says() {
    for (body, expected) in [
        ("return ('hello world'):match('^(%w+)')", "hello"),
        ("return ('  x y  '):match('^%s*(.-)%s*$')", "x y"),
        ("return ('k = v'):gsub('(%w+) = (%w+)', '%2=%1')", "v=k"),
        ("return (('abc'):gsub('', '-'))", "-a-b-c-"),
        ("return (('abc'):gsub('%w', '%0%0', 2))", "aabbc"),
        ("return (('hello'):gsub('l', {l = 'L'}))", "heLLo"),
        ("return (('hello'):gsub('[aeiou]', string.upper))", "hEllO"),
        ("return table.concat({('a.b'):find('.', 1, true)}, ',')", "2,2"),
        ("return table.concat({('a.b'):find('b()')}, ',')", "3,3,4"),
        ("return tostring(('abc'):find('x'))", "nil"),
        (
            "local t = {} for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do t[#t+1] = k .. v end return table.concat(t)",
            "a1b2",
        ),
        ("return ('f(a(b)c)d'):match('%b()')", "(a(b)c)"),
        ("return ('THE (quick) fox'):match('%f[%a]%a+%f[%A]', 5)", "quick"),
        ("return ('[[x]]'):match('[]]+$')", "]]"),
        ("return ('a-z'):match('[^a%-]')", "z"),
        ("return ('abab'):match('^(ab)%1$')", "ab"),
        ("return ('colour'):match('colou?r')", "colour"),
        ("return ('x'):rep(3, ',')", "x,x,x"),
        ("return (('abc'):sub(-2))", "bc"),
    ] {
        assert_eq!(text(body), format!("'{expected}'"), "{body}");
    }
    assert!(failure("return ('x'):match('[a')").contains("malformed pattern"));
    assert!(failure("return ('x'):match('(x')").contains("unfinished capture"));
    assert!(failure("return ('x'):match('%')").contains("malformed pattern"));
}

#[test]
fn many_threads_call_one_script() {
    let arguments = [("a".to_owned(), CqlType::Int)];
    let script = Script::compile(&arguments, &CqlType::Int, "return a + 1", limits()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..50_i32 {
                    let argument = Some(Bytes::copy_from_slice(&number.to_be_bytes()));
                    let result = call(&script, &[argument]).unwrap().unwrap();
                    assert_eq!(result[..], (number + 1).to_be_bytes());
                }
            });
        }
    });
}
