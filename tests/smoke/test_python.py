"""The engine inside of Python: the module of the wheel, beside the stock driver on a server."""

import collections
import datetime
import decimal
import importlib
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import threading
import uuid

import pytest
from cassandra.util import Date, Duration, OrderedMapSerializedKey, SortedSet, Time

from test_types import COMPLEX, SIMPLE, names

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = pathlib.Path(os.environ.get("SMOKE_MODULE", ""))
KEYSPACE = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
RUN_SECS = 300
THREADS = 8
ROWS = 20_000

pytestmark = pytest.mark.skipif(not MODULE.is_file(), reason="the library of ilion-python is not built")

Person = collections.namedtuple("Person", "name born")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A directory with the package as the wheel has it."""
    directory = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "python/src/ilion", directory / "ilion", ignore=shutil.ignore_patterns("__pycache__"))
    (directory / "ilion/_engine.abi3.so").symlink_to(MODULE)
    return directory


@pytest.fixture(scope="module")
def ilion(package):
    sys.path.insert(0, str(package))
    yield importlib.import_module("ilion")
    sys.path.remove(str(package))


@pytest.fixture
def local(ilion, tmp_path):
    """A session in this process, with an empty keyspace."""
    with ilion.connect(tmp_path / "data") as local:
        local.execute(f"CREATE KEYSPACE k {KEYSPACE}")
        local.set_keyspace("k")
        yield local


@pytest.fixture
def songs(local):
    local.execute("CREATE TABLE songs (id int PRIMARY KEY, title text, tags set<text>)")
    return local


@pytest.fixture(scope="module")
def many(ilion, tmp_path_factory):
    """A session with a table of 20,000 rows in 20 partitions."""
    with ilion.connect(tmp_path_factory.mktemp("many") / "data", commitlog_sync="periodic") as many:
        many.execute(f"CREATE KEYSPACE k {KEYSPACE}")
        many.set_keyspace("k")
        many.execute("CREATE TABLE numbers (part int, n int, square bigint, PRIMARY KEY (part, n))")
        insert = many.prepare("INSERT INTO numbers (part, n, square) VALUES (?, ?, ?)")
        for n in range(ROWS):
            many.execute(insert, (n % 20, n, n * n))
        yield many


def run(package, script, *arguments):
    """Runs a script in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(package)}
    words = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(words, env=environment, text=True, capture_output=True, check=False, timeout=RUN_SECS)


def plain(value):
    """The containers of both sides as those of Python, and values with the names of their classes."""
    if isinstance(value, (SortedSet, set, frozenset)):
        return frozenset(plain(item) for item in value)
    if isinstance(value, (OrderedMapSerializedKey, dict)):
        return frozenset((plain(key), plain(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    if isinstance(value, (Date, Time)) or type(value).__name__ in ("Date", "Time", "Duration"):
        return type(value).__name__, str(value)
    return type(value).__name__, value


MORE = [
    ("set<frozen<list<int>>>", {(1, 2), (3,)}, "{[1, 2], [3]}"),
    ("map<frozen<set<int>>, int>", {frozenset({1, 2}): 5}, "{{1, 2}: 5}"),
    ("set<frozen<tuple<int, text>>>", {(1, "a")}, "{(1, 'a')}"),
    ("list<int>", [], "[]"),
    ("frozen<list<int>>", [], "[]"),
    ("timestamp", datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), "-1"),
    ("timestamp", datetime.datetime(1, 1, 1), "'0001-01-01T00:00:00.000Z'"),
    ("date", Date(-719162), "'0001-01-01'"),
    ("duration", Duration(-1, 0, -5), "-1mo5ns"),
    ("decimal", decimal.Decimal("1E+30"), "1e30"),
    ("decimal", decimal.Decimal("0.00"), "0.00"),
    ("double", float("inf"), "Infinity"),
    ("varint", -1, "-1"),
    ("inet", "::ffff:10.0.0.1", "'::ffff:10.0.0.1'"),
]


def both(session, local, cql):
    session.execute(cql)
    local.execute(cql)


@pytest.mark.parametrize("cql_type, value, literal", SIMPLE + COMPLEX + MORE, ids=names(SIMPLE + COMPLEX + MORE))
def test_a_value_is_what_the_driver_gives(session, local, fresh, cql_type, value, literal):
    address = "CREATE TYPE IF NOT EXISTS address (street text, zip int, phones frozen<set<text>>)"
    both(session, local, address)
    name = fresh("value")
    both(session, local, f"CREATE TABLE {name} (k int PRIMARY KEY, v {cql_type})")
    for one in (session, local):
        one.execute(one.prepare(f"INSERT INTO {name} (k, v) VALUES (1, ?)"), (value,))
        one.execute(f"INSERT INTO {name} (k, v) VALUES (2, {literal})")
        one.execute(one.prepare(f"INSERT INTO {name} (k, v) VALUES (3, ?)"), (None,))
    for k in (1, 2, 3):
        select = f"SELECT v FROM {name} WHERE k = {k}"
        expected, got = session.execute(select).one().v, local.execute(select).one().v
        assert plain(got) == plain(expected)
    # What was read can be written.
    read = local.execute(f"SELECT v FROM {name} WHERE k = 1").one().v
    local.execute(f"INSERT INTO {name} (k, v) VALUES (%s, %s)", (4, read))
    assert plain(local.execute(f"SELECT v FROM {name} WHERE k = 4").one().v) == plain(read)


def test_counters_are_numbers(local):
    local.execute("CREATE TABLE hits (page text PRIMARY KEY, count counter)")
    with local.batch("counter") as batch:
        for _ in range(3):
            batch.add("UPDATE hits SET count = count + %s WHERE page = %s", (2, "index"))
    assert local.execute("SELECT page, count FROM hits").all() == [("index", 6)]


def test_values_fit_that_the_driver_takes(ilion, local):
    local.execute("CREATE TYPE person (name text, born int)")
    local.execute(
        "CREATE TABLE t (k int PRIMARY KEY, a timestamp, b date, c time, d decimal, e blob, f person, g list<int>, h double)"
    )
    insert = local.prepare("INSERT INTO t (k, a, b, c, d, e, f, g, h) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
    zone = datetime.timezone(datetime.timedelta(hours=2))
    noon = datetime.datetime(2026, 11, 27, 12)
    rows = [
        (1, noon.replace(hour=14, tzinfo=zone), datetime.date(2026, 11, 27), datetime.time(12), 5, bytearray(b"a"), ("Ann",), (1, 2), 1),
        (2, 1795780800000, "2026-11-27", "12:00:00", "5", memoryview(b"a"), {"name": "Ann"}, {1, 2}, 1.0),
        (3, noon, ilion.Date(20784), ilion.Time(12 * 3600 * 10**9), decimal.Decimal(5), b"a", Person("Ann", None), range(1, 3), True),
    ]
    for row in rows:
        local.execute(insert, row)
    for row in local.execute("SELECT * FROM t"):
        assert row._replace(k=0) == (0, noon, datetime.date(2026, 11, 27), datetime.time(12), 5, b"a", ("Ann", None), [1, 2], 1.0)


def test_unset_leaves_a_value_and_none_deletes_it(ilion, songs):
    insert = songs.prepare("INSERT INTO songs (id, title, tags) VALUES (?, ?, ?)")
    songs.execute(insert, (1, "Tush", {"rock"}))
    songs.execute(insert, (1, ilion.UNSET_VALUE, None))
    assert songs.execute("SELECT title, tags FROM songs").one() == ("Tush", None)


@pytest.mark.parametrize(
    "query, parameters",
    [
        ("INSERT INTO songs (id, title) VALUES (%s, %s)", (1, "50 % 'off' %s")),
        ("INSERT INTO songs (id, title) VALUES (%(id)s, %(title)s)", {"id": 1, "title": "50 % 'off' %s", "more": 3}),
        ("INSERT INTO songs (id, title) VALUES (%(Id)s, %(a b)s)", {"Id": 1, "a b": "50 % 'off' %s"}),
        ("INSERT INTO songs (id, title) VALUES (?, ?)", [1, "50 % 'off' %s"]),
        ("INSERT INTO songs (id, title) VALUES (:id, :title)", {"id": 1, "title": "50 % 'off' %s"}),
        ("INSERT INTO songs (id, title) VALUES (?, ?) -- %s", {"id": 1, "title": "50 % 'off' %s"}),
        ("INSERT INTO songs (id, title) VALUES (%s, '50 %% ''off'' %%s') /* ? */", (1,)),
        ("INSERT INTO songs (id, title) VALUES (?, $$50 % 'off' %s$$)", (1,)),
    ],
)
def test_markers_of_the_driver_and_of_cql_are_bound(songs, query, parameters):
    songs.execute(query, parameters)
    assert songs.execute("SELECT id, title FROM songs").all() == [(1, "50 % 'off' %s")]


@pytest.mark.parametrize(
    "query, parameters, words",
    [
        ("INSERT INTO songs (id, title) VALUES (%s, ?)", (1, "a"), "mixes markers"),
        ("INSERT INTO songs (id, title) VALUES (%s, '%s')", (1, "a"), "no quotes around it"),
        ("INSERT INTO songs (id, title) VALUES (%s, %s)", (1,), "2 bind markers, 1 parameters"),
        ("INSERT INTO songs (id) VALUES (%s)", 7, r"a tuple, a list or a dict, not int: for one value write \(value,\)"),
        ("INSERT INTO songs (id) VALUES (%s)", "7", "not str"),
        ("INSERT INTO songs (id) VALUES (%(id)s)", {"Id": 7}, "no parameter has this name"),
        ("INSERT INTO songs (id) VALUES (%s)", ("7",), r"parameter 0 \(id\) is of type int: expected int, got str"),
        ("INSERT INTO songs (id) VALUES (%s)", (1.5,), "expected int, got float"),
        ("INSERT INTO songs (id) VALUES (%s)", (2**31,), "2147483648 is too large for it"),
        ("INSERT INTO songs (id) VALUES (%s)", (1 << 5_000_000,), "an int of 5000001 bits is too large"),
        ("INSERT INTO songs (id, title) VALUES (%s, %s)", (1, b"a"), "expected str, got bytes"),
        ("INSERT INTO songs (id, title) VALUES (%s, %s)", (1, "\ud800"), "surrogates"),
        ("INSERT INTO songs (id, tags) VALUES (%s, %s)", (1, "ab"), "expected a list, a set or another iterable, got str"),
        ("INSERT INTO songs (id, tags) VALUES (%s, %s)", (1, ["a", 5]), "element 1: expected str, got int"),
        ("INSERT INTO songs (id, tags) VALUES (%s, %s)", (1, [None]), "element 0: None is no element"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(ilion, songs, query, parameters, words):
    with pytest.raises(ilion.BindError, match=words) as refused:
        songs.execute(query, parameters)
    assert isinstance(refused.value, (ilion.DataError, TypeError))
    assert songs.execute("SELECT * FROM songs").all() == []


def test_an_exception_of_a_parameter_goes_through(songs):
    def broken():
        yield "a"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        songs.execute("INSERT INTO songs (id, tags) VALUES (%s, %s)", (1, broken()))


def test_errors_have_the_names_of_the_driver(ilion, songs):
    with pytest.raises(ilion.SyntaxException):
        songs.execute("SELEC")
    with pytest.raises(ilion.InvalidRequest, match="genre"):
        songs.execute("SELECT genre FROM songs")
    with pytest.raises(ilion.AlreadyExists) as known:
        songs.execute("CREATE TABLE songs (id int PRIMARY KEY)")
    assert (known.value.keyspace, known.value.table) == ("k", "songs")
    with pytest.raises(ilion.ConfigurationException):
        songs.execute("CREATE KEYSPACE x WITH replication = {'class': 'Nowhere'}")
    assert issubclass(ilion.AlreadyExists, ilion.ProgrammingError)
    again = pickle.loads(pickle.dumps(known.value))
    assert (type(again), str(again), again.table) == (ilion.AlreadyExists, str(known.value), "songs")


def test_a_prepared_statement_goes_on_when_its_table_changes(songs):
    insert = songs.prepare("INSERT INTO songs (id, title) VALUES (?, ?)")
    everything = songs.prepare("SELECT * FROM songs WHERE id = ?")
    assert insert.markers == [("id", "int"), ("title", "text")]
    songs.execute(insert.bind((1, "Tush")))
    songs.execute("ALTER TABLE songs ADD length int")
    songs.execute(insert, (2, "La Grange"))
    assert songs.execute(everything, {"id": 2}).one()._asdict() == {"id": 2, "length": None, "tags": None, "title": "La Grange"}
    songs.execute("DROP TABLE songs")
    songs.execute("CREATE TABLE songs (id text PRIMARY KEY, title text)")
    songs.execute("INSERT INTO songs (id, title) VALUES (%s, %s)", ("one", "Tush"))
    assert songs.execute("SELECT id FROM songs WHERE title = %s ALLOW FILTERING", ("Tush",)).one().id == "one"


def test_batches_and_conditions(ilion, songs, tmp_path):
    insert = songs.prepare("INSERT INTO songs (id, title) VALUES (?, ?)")
    with songs.batch() as batch:
        batch.add(insert, (1, "La Grange")).add(insert.bind((2, "Tush")))
        batch.add("DELETE FROM songs WHERE id = %s", (3,))
        batch.add("INSERT INTO songs (id) VALUES (4)")
        # The batch keeps what nobody else does.
        batch.add(songs.prepare("INSERT INTO songs (id) VALUES (?)"), (6,))
        assert len(batch) == 5
    assert sorted(row.id for row in songs.execute("SELECT id FROM songs")) == [1, 2, 4, 6]
    with pytest.raises(ValueError), songs.batch() as batch:
        batch.add(insert, (9, "never"))
        raise ValueError
    assert songs.execute("SELECT id FROM songs WHERE id = 9").one() is None
    assert songs.execute("INSERT INTO songs (id) VALUES (5) IF NOT EXISTS").was_applied
    refused = songs.execute("INSERT INTO songs (id, title) VALUES (1, 'x') IF NOT EXISTS")
    assert not refused.was_applied and refused.one().title == "La Grange"
    with pytest.raises(ilion.ProgrammingError, match="IF"):
        _ = songs.execute(insert, (1, "a")).was_applied
    with pytest.raises(ilion.InterfaceError, match="'logged', 'unlogged' or 'counter'"):
        songs.batch("fast")
    with ilion.connect(tmp_path / "other") as other, pytest.raises(ilion.InterfaceError, match="another session"):
        other.execute(insert, (1, "a"))


def test_names_of_columns_are_attributes(session, local):
    both(session, local, 'CREATE TABLE odd (k int PRIMARY KEY, "class" int, "two words" int, "_x" int)')
    both(session, local, 'INSERT INTO odd (k, "class", "two words", "_x") VALUES (1, 2, 3, 4)')
    query = 'SELECT count(*), max(k), "two words", k AS k, k, "_x" FROM odd'
    expected, got = session.execute(query), local.execute(query)
    assert got.column_names == expected.column_names
    assert got.one()._fields[:3] == expected.one()._fields[:3]
    assert local.execute('SELECT "class" FROM odd').one().field_0_ == 2


def test_pages_are_read_when_they_are_needed(many):
    result = many.execute("SELECT n, square FROM numbers", fetch_size=1000)
    assert len(result.current_rows) == 1000 and result.has_more_pages
    seen = dict(result)
    assert seen == {n: n * n for n in range(ROWS)}
    assert not result.has_more_pages and result.all() == []


def test_a_paging_state_of_something_else_is_refused(ilion, many):
    for state in (b"", b"x", os.urandom(40)):
        with pytest.raises(ilion.ProgrammingError):
            many.execute("SELECT n FROM numbers", paging_state=state)


def test_a_later_call_goes_on_after_a_page(many):
    select = many.prepare("SELECT n FROM numbers")
    select.fetch_size = 7000
    first = many.execute(select)
    numbers, state = [row.n for row in first.current_rows], first.paging_state
    second = many.execute(select, paging_state=state)
    numbers += [row.n for row in second]
    assert sorted(numbers) == list(range(ROWS))


def test_all_rows_at_once(many):
    many.default_fetch_size = 0
    result = many.execute("SELECT n FROM numbers")
    many.default_fetch_size = 5000
    assert len(result.current_rows) == ROWS and not result.has_more_pages


def test_a_select_ends_at_its_timeout(ilion, many):
    with pytest.raises(ilion.ReadTimeout) as late:
        many.execute("SELECT count(*) FROM numbers", timeout=1e-9)
    assert isinstance(late.value, (ilion.Timeout, ilion.OperationalError))
    assert many.execute("SELECT count(*) FROM numbers", timeout=600).one().count == ROWS
    with pytest.raises(ValueError, match="more than 0"):
        many.execute("SELECT n FROM numbers", timeout=0)


def test_columns_of_arrow(many, local):
    pyarrow = pytest.importorskip("pyarrow")
    table = many.execute("SELECT n, square FROM numbers", fetch_size=3000).to_arrow()
    assert table.schema == pyarrow.schema([("n", pyarrow.int32()), ("square", pyarrow.int64())])
    assert sorted(table["square"].to_pylist()) == [n * n for n in range(ROWS)]
    begun = many.execute("SELECT n FROM numbers", fetch_size=3000)
    firsts = [next(begun).n for _ in range(10)]
    reader = pyarrow.RecordBatchReader.from_stream(begun)
    assert len({*firsts, *reader.read_all()["n"].to_pylist()}) == ROWS


def test_every_type_has_a_column_of_arrow(local):
    pyarrow = pytest.importorskip("pyarrow")
    local.execute("CREATE TYPE person (name text, born int)")
    local.execute(
        "CREATE TABLE t (k int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e date, f decimal, g double, h duration, i float,"
        " j inet, l smallint, m time, n timestamp, o timeuuid, p tinyint, q uuid, r varint, s list<int>, u set<text>,"
        " v map<text, int>, w tuple<int, text>, x vector<float, 2>, y person)"
    )
    stamp = uuid.UUID("50554d6e-29bb-11e5-b345-feff819cdc9f")
    row = (
        *(1, "a", 2, b"c", True, datetime.date(2026, 11, 27), decimal.Decimal("1.50"), 0.5, Duration(1, 2, 3), 0.25),
        *("::1", 3, Time("01:02:03.000000004"), datetime.datetime(2026, 11, 27), stamp, 4, stamp, 10**30, [1, 2], {"x"}),
        *({"one": 1}, (1, None), [0.5, 1.0], Person("Ann", 1990)),
    )
    columns = "k a b c d e f g h i j l m n o p q r s u v w x y".split()
    local.execute(f"INSERT INTO t ({', '.join(columns)}) VALUES ({', '.join(['?'] * len(columns))})", row)
    local.execute("INSERT INTO t (k) VALUES (2)")
    table = local.execute(f"SELECT {', '.join(columns)} FROM t").to_arrow().sort_by("k")
    assert table.slice(0, 1).to_pylist() == [
        {
            **dict(zip(columns, row)),
            "f": "1.50",
            "h": pyarrow.MonthDayNano([1, 2, 3]),
            "m": table["m"][0].as_py(),
            "n": datetime.datetime(2026, 11, 27, tzinfo=datetime.timezone.utc),
            "o": str(stamp),
            "q": str(stamp),
            "r": str(10**30),
            "u": ["x"],
            "v": [("one", 1)],
            "w": {"0": 1, "1": None},
            "y": {"name": "Ann", "born": 1990},
        }
    ]
    assert table["m"][0].value == 3_723_000_000_004
    assert {name for name, value in table.slice(1, 1).to_pylist()[0].items() if value is not None} == {"k"}


def test_a_frame_of_pandas_keeps_null_and_large_numbers(songs):
    pytest.importorskip("pandas")
    songs.execute("CREATE TABLE large (k int PRIMARY KEY, n bigint)")
    songs.execute("INSERT INTO large (k, n) VALUES (1, 9007199254740993)")
    songs.execute("INSERT INTO large (k) VALUES (2)")
    frame = songs.execute("SELECT k, n FROM large").to_pandas().sort_values("k")
    assert frame["n"].iloc[0] == 9007199254740993
    assert frame["n"].isna().tolist() == [False, True]


def test_without_pyarrow_the_error_says_what_to_install(songs, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'ilion\[arrow\]'"):
        songs.execute("SELECT * FROM songs").to_arrow()


def test_a_time_that_python_does_not_have_is_an_error_and_arrow_has_it(ilion, local):
    local.execute("CREATE TABLE far (k int PRIMARY KEY, at timestamp)")
    local.execute("INSERT INTO far (k, at) VALUES (1, %s)", (10**15,))
    result = local.execute("SELECT at FROM far")
    with pytest.raises(ilion.DataError, match="column at: datetime has years from 1 to 9999"):
        result.one()
    if importlib.util.find_spec("pyarrow"):
        assert result.to_arrow()["at"].cast("int64").to_pylist() == [10**15]


def test_threads_share_a_session(many):
    many.execute("CREATE TABLE shared (thread int, n int, text text, PRIMARY KEY (thread, n))")
    insert = many.prepare("INSERT INTO shared (thread, n, text) VALUES (?, ?, ?)")
    failures = []

    def work(thread):
        try:
            for n in range(200):
                many.execute(insert, (thread, n, f"{thread}/{n}"))
                many.execute("SELECT count(*) FROM shared WHERE thread = %s", (thread,)).one()
            assert len(many.execute("SELECT n FROM numbers", fetch_size=1000).all()) == ROWS
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(RUN_SECS)
    assert not failures and not any(thread.is_alive() for thread in threads)
    rows = {(row.thread, row.n): row.text for row in many.execute("SELECT * FROM shared")}
    assert rows == {(thread, n): f"{thread}/{n}" for thread in range(THREADS) for n in range(200)}


def test_a_closed_session_refuses_calls_and_opens_again(ilion, tmp_path):
    session = ilion.connect(tmp_path / "data")
    session.execute(f"CREATE KEYSPACE k {KEYSPACE}")
    session.execute("CREATE TABLE k.t (id int PRIMARY KEY)")
    insert = session.prepare("INSERT INTO k.t (id) VALUES (?)")
    for number in range(10):
        session.execute(insert, (number,))
    pages = session.execute("SELECT id FROM k.t", fetch_size=3)
    session.close()
    session.close()
    assert session.is_closed
    for call in (
        lambda: session.execute("SELECT id FROM k.t"),
        lambda: session.execute(insert, (1,)),
        lambda: session.prepare("SELECT id FROM k.t"),
        lambda: session.keyspace,
        session.flush,
        pages.all,
    ):
        with pytest.raises(ilion.InterfaceError, match="the session is closed"):
            call()
    with ilion.connect(tmp_path / "data", keyspace="k") as again:
        assert len(again.execute("SELECT id FROM t").all()) == 10
    with pytest.raises(ilion.InvalidRequest, match="nowhere"):
        ilion.connect(tmp_path / "data", keyspace="nowhere")
    # The refused call has left the directory closed.
    ilion.connect(tmp_path / "data").close()


OPEN = """
import sys, ilion
try:
    ilion.connect(sys.argv[1])
except ilion.DirectoryInUse as error:
    print(error)
"""


def test_a_directory_is_open_once(ilion, package, local, tmp_path):
    done = run(package, OPEN, tmp_path / "data")
    assert "is in use: a directory is open once at a time" in done.stdout, done.stderr
    with pytest.raises(ilion.OpenError, match="share the session between threads"):
        ilion.connect(tmp_path / "data")


FORK = """
import os, sys, ilion
session = ilion.connect(sys.argv[1])
child = os.fork()
if child == 0:
    try:
        session.execute("SELECT * FROM system.local")
    except ilion.InterfaceError as error:
        print(error, flush=True)
    session.close()
    del session
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(session.execute("SELECT cluster_name FROM system.local").one().cluster_name)
"""


def test_a_forked_process_is_refused_and_does_no_harm(package, tmp_path):
    done = run(package, FORK, tmp_path / "data")
    assert done.returncode == 0, done.stderr
    words = done.stdout.splitlines()
    assert "forked" in words[0] and words[1:] == ["7", "Ilion"], done.stdout + done.stderr


LEFT_OPEN = """
import sys, ilion
session = ilion.connect(sys.argv[1], commitlog_sync="periodic")
session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
session.execute("CREATE TABLE k.t (id int PRIMARY KEY)")
session.execute("INSERT INTO k.t (id) VALUES (1)")
"""


def test_a_session_that_is_left_open_is_closed_at_the_end(ilion, package, tmp_path):
    done = run(package, LEFT_OPEN, tmp_path / "data")
    assert (done.returncode, done.stderr) == (0, "")
    with ilion.connect(tmp_path / "data") as session:
        assert session.execute("SELECT id FROM k.t").all() == [(1,)]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"native_transport_port": 9042}, "native_transport_port: it is for a server"),
        ({"commitlog_synch": "batch"}, "commitlog_synch"),
        ({"commitlog_sync": "sometimes"}, "commitlog_sync"),
        ({"log": "kafka://127.0.0.1:9092/x"}, "log"),
    ],
)
def test_settings_that_do_not_fit_are_refused(ilion, tmp_path, settings, words):
    with pytest.raises(ilion.OpenError, match=words):
        ilion.connect(tmp_path / "data", **settings)


def test_settings_hold(ilion, tmp_path):
    settings = {"cluster_name": "mine", "cdc_enabled": True, "tombstone_warn_threshold": 5, "cdc_raw_directory": tmp_path / "cdc"}
    with ilion.connect(tmp_path / "data", **settings) as session:
        for name, value in settings.items():
            shown = session.execute("SELECT value FROM system_views.settings WHERE name = %s", (name,)).one().value
            assert shown == (str(value).lower() if isinstance(value, bool) else str(value))


WRITE = """
import itertools, sys, ilion
session = ilion.connect(sys.argv[1], memtable_heap_space="1MiB", commitlog_segment_size="1MiB")
session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
insert = None
session.execute("CREATE TABLE k.t (id int PRIMARY KEY, text text)")
insert = session.prepare("INSERT INTO k.t (id, text) VALUES (?, ?)")
for number in itertools.count():
    session.execute(insert, (number, f"{number} " + 500 * "x"))
    print(number, flush=True)
"""


def test_acknowledged_rows_survive_kill_9(ilion, package, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(package)}
    words = [sys.executable, "-c", WRITE, str(tmp_path / "data")]
    with subprocess.Popen(words, env=environment, text=True, stdout=subprocess.PIPE) as writer:
        acknowledged = -1
        while acknowledged < 3000:
            acknowledged = int(writer.stdout.readline())
        writer.kill()
        rest = writer.stdout.read().splitlines(keepends=True)
        acknowledged = max([acknowledged, *(int(line) for line in rest if line.endswith("\n"))])
    with ilion.connect(tmp_path / "data", keyspace="k") as session:
        rows = dict(session.execute("SELECT id, text FROM t"))
    assert rows.keys() >= set(range(acknowledged + 1))
    # The one that was in flight may be there, too.
    assert len(rows) <= acknowledged + 2
    assert all(text == f"{number} " + 500 * "x" for number, text in rows.items())
