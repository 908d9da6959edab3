"""The cities of the world: real data of more than 100,000 rows."""

import collections
import csv
import os

City = collections.namedtuple("City", "cc admin1 name id admin2 lat lon")

COLUMNS = ", ".join(City._fields)
TABLE = (
    "CREATE TABLE cities (cc text, admin1 text, name text, id int, admin2 text, lat double, lon double, "
    "PRIMARY KEY (cc, admin1, name, id))"
)
# The dialect that COPY writes and reads by default.
DIALECT = {"doublequote": False, "escapechar": "\\"}
# Without the option, COPY reads empty fields as null, and a clustering column may be empty but not null.
COPY_OPTIONS = "WITH HEADER = TRUE AND NULL = '<null>'"


def read():
    with open(os.environ["SMOKE_CITIES"], encoding="utf-8", newline="") as source:
        return [
            City(row["cc"], row["admin1"], row["name"], number, row["admin2"], float(row["lat"]), float(row["lon"]))
            for number, row in enumerate(csv.DictReader(source))
        ]


def write(cities, path):
    with open(path, "w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target, **DIALECT)
        writer.writerow(City._fields)
        writer.writerows(cities)


def read_back(path):
    with open(path, encoding="utf-8", newline="") as source:
        return [
            City(r["cc"], r["admin1"], r["name"], int(r["id"]), r["admin2"], float(r["lat"]), float(r["lon"]))
            for r in csv.DictReader(source, **DIALECT)
        ]
