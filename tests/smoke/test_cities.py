"""Real data: loaded with COPY FROM, queried in every way that a key allows, and exported with COPY TO."""

import collections

import pytest
from cassandra.query import SimpleStatement

import cities as world
from cities import City
from shell import Cqlsh


@pytest.fixture(scope="module")
def cities():
    cities = world.read()
    assert len(cities) > 100_000
    return cities


@pytest.fixture(scope="module")
def loaded(node, session, cities, tmp_path_factory):
    """A session, after cqlsh has loaded all cities."""
    source = tmp_path_factory.mktemp("cities") / "cities.csv"
    world.write(cities, source)
    session.execute(world.TABLE)
    said = Cqlsh(node, session.keyspace).run(f"COPY cities ({world.COLUMNS}) FROM '{source}' {world.COPY_OPTIONS};")
    assert f"{len(cities)} rows imported from 1 files" in said.replace(",", ""), said
    return session


def fetch(session, query, values=(), page=1000):
    statement = session.prepare(query)
    statement.fetch_size = page
    return [City(*row) for row in session.execute(statement, values)]


def test_every_city_went_in(loaded, cities):
    statement = SimpleStatement(f"SELECT {world.COLUMNS} FROM cities", fetch_size=2000)
    rows = [City(*row) for row in loaded.execute(statement)]
    assert len(rows) == len(cities)
    assert sorted(rows) == sorted(cities)


def test_a_count_counts(loaded, cities):
    assert loaded.execute("SELECT COUNT(*) FROM cities").one().count == len(cities)
    expected = sum(city.cc == "DE" for city in cities)
    assert loaded.execute("SELECT COUNT(*) FROM cities WHERE cc = 'DE'").one().count == expected


def test_the_partitions_are_the_countries(loaded, cities):
    rows = loaded.execute("SELECT DISTINCT cc FROM cities")
    assert {row.cc for row in rows} == {city.cc for city in cities}


@pytest.mark.parametrize("country", ["AD", "CH", "US", "IN"])
def test_a_partition_comes_in_clustering_order_both_ways(loaded, cities, country):
    expected = sorted(
        (city for city in cities if city.cc == country),
        key=lambda city: (city.admin1.encode(), city.name.encode(), city.id),
    )
    select = f"SELECT {world.COLUMNS} FROM cities WHERE cc = ?"
    assert fetch(loaded, select, (country,)) == expected
    assert fetch(loaded, select + " ORDER BY admin1 DESC", (country,), page=333) == expected[::-1]
    assert fetch(loaded, select + " LIMIT 10", (country,)) == expected[:10]


def test_a_clustering_range_has_what_lies_in_it(loaded, cities):
    bavaria = [city for city in cities if (city.cc, city.admin1) == ("DE", "Bavaria")]
    select = f"SELECT {world.COLUMNS} FROM cities WHERE cc = 'DE' AND admin1 = 'Bavaria'"
    assert sorted(fetch(loaded, select)) == sorted(bavaria)
    between = [city for city in bavaria if "M" <= city.name < "N"]
    assert between
    assert sorted(fetch(loaded, select + " AND name >= ? AND name < ?", ("M", "N"), page=10)) == sorted(between)
    [munich] = fetch(loaded, select + " AND name = 'Munich'")
    assert abs(munich.lat - 48.1) < 0.1


def test_a_range_over_two_columns_has_what_lies_in_it(loaded, cities):
    expected = [c for c in cities if c.cc == "FR" and ("Bretagne", "P") < (c.admin1, c.name) <= ("Corse", "B")]
    select = f"SELECT {world.COLUMNS} FROM cities WHERE cc = 'FR' AND (admin1, name) > (?, ?) AND (admin1, name) <= (?, ?)"
    assert sorted(fetch(loaded, select, ("Bretagne", "P", "Corse", "B"))) == sorted(expected)


def test_several_partitions_at_once(loaded, cities):
    expected = [city for city in cities if city.cc in ("LI", "MC", "SM")]
    select = f"SELECT {world.COLUMNS} FROM cities WHERE cc IN ('LI', 'SM', 'MC', 'XX')"
    assert sorted(fetch(loaded, select)) == sorted(expected)
    [row] = fetch(loaded, select + " PER PARTITION LIMIT 1 LIMIT 1")
    assert row.cc == "LI"


def test_token_ranges_cover_the_table_without_overlap(loaded, cities):
    parts = 16
    bounds = [-(2**63) + (2**64 - 1) * part // parts for part in range(parts + 1)]
    seen = collections.Counter()
    tokens = []
    statement = loaded.prepare(
        "SELECT token(cc) AS t, cc, id FROM cities WHERE token(cc) > ? AND token(cc) <= ?"
    )
    statement.fetch_size = 777
    for after, last in zip(bounds, bounds[1:]):
        for row in loaded.execute(statement, (after, last)):
            assert after < row.t <= last
            tokens.append(row.t)
            seen[row.id] += 1
    assert tokens == sorted(tokens)
    assert len(seen) == len(cities) and set(seen.values()) == {1}


def test_filtering_finds_what_a_program_finds(loaded, cities):
    expected = [city for city in cities if city.cc == "NZ" and city.lat > -37]
    rows = fetch(loaded, f"SELECT {world.COLUMNS} FROM cities WHERE cc = 'NZ' AND lat > -37 ALLOW FILTERING")
    assert sorted(rows) == sorted(expected)


def test_the_cities_come_out_as_they_went_in(node, loaded, cities, tmp_path):
    target = tmp_path / "out.csv"
    shell = Cqlsh(node, loaded.keyspace)
    options = f"{world.COPY_OPTIONS} AND PAGESIZE = 5000 AND DOUBLEPRECISION = 17"
    said = shell.run(f"COPY cities ({world.COLUMNS}) TO '{target}' {options};")
    assert f"{len(cities)} rows exported to 1 files" in said.replace(",", ""), said
    assert sorted(world.read_back(target)) == sorted(cities)


def test_deleting_a_range_leaves_the_rest(loaded, cities):
    loaded.execute("DELETE FROM cities WHERE cc = 'AT' AND admin1 > 'C'")
    expected = [city for city in cities if city.cc == "AT" and city.admin1 <= "C"]
    assert expected
    assert sorted(fetch(loaded, f"SELECT {world.COLUMNS} FROM cities WHERE cc = 'AT'")) == sorted(expected)
