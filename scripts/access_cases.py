"""Writes the scripts of tests/cql/logins from tables: each statement, by a role with each permission on each resource that may matter.

    python3 scripts/access_cases.py
    cargo run -p ilion-answers -- record HOST:PORT tests/cql/logins/*.cql

The Cassandra that is recorded has PasswordAuthenticator and CassandraAuthorizer, no caches of roles and permissions, user-defined functions
and dynamic data masking.
"""

import os

DIRECTORY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "cql", "logins")

DATA = [
    ("all", "ALL KEYSPACES"),
    ("keyspace", "KEYSPACE ks"),
    ("tables", "ALL TABLES IN KEYSPACE ks"),
    ("table", "TABLE ks.t"),
]
DATA_PERMISSIONS = ["CREATE", "ALTER", "DROP", "SELECT", "MODIFY", "AUTHORIZE", "DESCRIBE", "UNMASK", "SELECT_MASKED"]
FUNCTIONS = [
    ("functions", "ALL FUNCTIONS"),
    ("own_functions", "ALL FUNCTIONS IN KEYSPACE ks"),
    ("function", "FUNCTION ks.f(int)"),
]
FUNCTION_PERMISSIONS = ["CREATE", "ALTER", "DROP", "AUTHORIZE", "EXECUTE"]
ROLES = [("roles", "ALL ROLES"), ("role", "ROLE target")]
ROLE_PERMISSIONS = ["CREATE", "ALTER", "DROP", "AUTHORIZE", "DESCRIBE"]
OTHERS = [("mbeans", "ALL MBEANS"), ("mbean", "MBEAN 'org.apache.cassandra.db:type=Tables'"), ("unknown", "ks.nothing")]
PERMISSIONS = [*DATA_PERMISSIONS, "EXECUTE", "ALL"]

# What does not apply is refused, so no role gets it.
APPLICABLE = {
    "ALL KEYSPACES": set(DATA_PERMISSIONS) - {"DESCRIBE"},
    "KEYSPACE ks": set(DATA_PERMISSIONS) - {"DESCRIBE"},
    "ALL TABLES IN KEYSPACE ks": set(DATA_PERMISSIONS) - {"DESCRIBE"},
    "TABLE ks.t": set(DATA_PERMISSIONS) - {"DESCRIBE", "CREATE"},
    "ALL FUNCTIONS": set(FUNCTION_PERMISSIONS),
    "ALL FUNCTIONS IN KEYSPACE ks": set(FUNCTION_PERMISSIONS),
    "FUNCTION ks.f(int)": set(FUNCTION_PERMISSIONS) - {"CREATE"},
    "ALL ROLES": set(ROLE_PERMISSIONS),
    "ROLE target": set(ROLE_PERMISSIONS) - {"CREATE", "DESCRIBE"},
}

FUNCTION = "(x int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return x'"
STATE = "(s int, x int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return x'"
JAVA = "// java return x;"
SETUP = [
    "CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))",
    "CREATE TABLE ks.u (k int, c int, v int, PRIMARY KEY (k, c))",
    "CREATE TABLE ks.n (k int PRIMARY KEY, c counter)",
    "CREATE TABLE ks.m (k int PRIMARY KEY, v text MASKED WITH DEFAULT)",
    "CREATE INDEX t_v ON ks.t (v)",
    "CREATE MATERIALIZED VIEW ks.mv AS SELECT * FROM ks.t WHERE k IS NOT NULL AND c IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k, c)",
    "CREATE TYPE ks.ty (a int)",
    f"{JAVA}\nCREATE FUNCTION ks.f {FUNCTION}",
    f"{JAVA}\nCREATE FUNCTION ks.state {STATE}",
    "CREATE AGGREGATE ks.agg (int) SFUNC state STYPE int",
    "INSERT INTO ks.t (k, c, v) VALUES (1, 1, 1)",
    "INSERT INTO ks.m (k, v) VALUES (1, 'secret')",
    "CREATE ROLE target WITH PASSWORD = 'target' AND LOGIN = true",
    "CREATE ROLE member",
]

# A statement, and what undoes it. The undoing is allowed to fail.
DATA_STATEMENTS = [
    ("SELECT * FROM ks.t WHERE k = 1", None),
    ("SELECT JSON v FROM ks.t WHERE v = 1", None),
    ("SELECT * FROM ks.mv WHERE v = 1", None),
    ("SELECT count(*) FROM ks.u", None),
    ("SELECT ks.f(v) FROM ks.t WHERE k = 1", None),
    ("SELECT v FROM ks.m WHERE k = 1", None),
    ("SELECT k FROM ks.m WHERE v = 'secret' ALLOW FILTERING", None),
    ("INSERT INTO ks.t (k, c, v) VALUES (1, 1, 1)", None),
    ("INSERT INTO ks.t (k, c, v) VALUES (1, 1, 1) IF NOT EXISTS", None),
    ("UPDATE ks.t SET v = 1 WHERE k = 1 AND c = 1", None),
    ("UPDATE ks.t SET v = ks.f(1) WHERE k = 1 AND c = 1", None),
    ("UPDATE ks.t SET v = 1 WHERE k = 1 AND c = 1 IF v = 1", None),
    ("UPDATE ks.n SET c = c + 0 WHERE k = 1", None),
    ("DELETE FROM ks.t WHERE k = 9", None),
    ("DELETE FROM ks.t WHERE k = 9 AND c = 1 IF EXISTS", None),
    ("BEGIN BATCH INSERT INTO ks.t (k, c, v) VALUES (1, 1, 1); INSERT INTO ks.u (k, c, v) VALUES (1, 1, 1); APPLY BATCH", None),
    ("INSERT INTO ks.mv (k, c, v) VALUES (1, 1, 1)", None),
    ("TRUNCATE ks.u", None),
    ("CREATE KEYSPACE other WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", "DROP KEYSPACE IF EXISTS other"),
    ("ALTER KEYSPACE ks WITH durable_writes = true", None),
    ("DROP KEYSPACE nothing", None),
    ("CREATE TABLE ks.made (k int PRIMARY KEY)", "DROP TABLE IF EXISTS ks.made"),
    ("CREATE TABLE IF NOT EXISTS ks.t (k int PRIMARY KEY)", None),
    ("ALTER TABLE ks.t WITH comment = 'x'", None),
    ("ALTER TABLE ks.t ADD w int", "ALTER TABLE ks.t DROP IF EXISTS w"),
    ("DROP TABLE ks.nothing", None),
    ("DROP TABLE IF EXISTS ks.nothing", None),
    ("CREATE INDEX made ON ks.t (c)", "DROP INDEX IF EXISTS ks.made"),
    ("DROP INDEX ks.nothing", None),
    ("CREATE TYPE ks.made (a int)", "DROP TYPE IF EXISTS ks.made"),
    ("ALTER TYPE ks.ty RENAME a TO a", None),
    ("DROP TYPE ks.nothing", None),
    ("ALTER MATERIALIZED VIEW ks.mv WITH comment = 'x'", None),
    ("DROP MATERIALIZED VIEW ks.nothing", None),
    ("GRANT SELECT ON ks.t TO member", "REVOKE SELECT ON ks.t FROM member"),
    ("GRANT MODIFY ON KEYSPACE ks TO member", "REVOKE MODIFY ON KEYSPACE ks FROM member"),
    ("REVOKE SELECT ON ks.t FROM member", None),
    ("DESCRIBE TABLE ks.n", None),
    ("USE system", None),
    ("SELECT key FROM system.local", None),
    ("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = 't'", None),
    ("SELECT role FROM system_auth.roles WHERE role = 'member'", None),
    ("SELECT name FROM system_views.settings WHERE name = 'cluster_name'", None),
    ("SELECT columnfamily_name FROM system.compaction_history WHERE id = 00000000-0000-1000-8080-808080808080", None),
    ("INSERT INTO system_auth.roles (role) VALUES ('evil')", "DELETE FROM system_auth.roles WHERE role = 'evil'"),
    ("DROP TABLE system_auth.roles", None),
    ("ALTER TABLE system_schema.tables WITH comment = 'x'", None),
    ("CREATE TABLE system.made (k int PRIMARY KEY)", None),
    ("TRUNCATE system_schema.tables", None),
]
FUNCTION_STATEMENTS = [
    ("SELECT ks.f(v) FROM ks.t WHERE k = 1", None),
    ("SELECT ks.agg(v) FROM ks.t", None),
    ("INSERT INTO ks.t (k, c, v) VALUES (ks.f(1), 1, 1)", None),
    (f"{JAVA}\nCREATE FUNCTION ks.made {FUNCTION}", "DROP FUNCTION IF EXISTS ks.made"),
    (f"{JAVA}\nCREATE OR REPLACE FUNCTION ks.f {FUNCTION}", None),
    (f"{JAVA}\nCREATE FUNCTION IF NOT EXISTS ks.f {FUNCTION}", None),
    ("DROP FUNCTION ks.nothing", None),
    ("DROP FUNCTION IF EXISTS ks.nothing (int)", None),
    ("CREATE AGGREGATE ks.made (int) SFUNC state STYPE int", "DROP AGGREGATE IF EXISTS ks.made"),
    ("CREATE OR REPLACE AGGREGATE ks.agg (int) SFUNC state STYPE int", None),
    ("DROP AGGREGATE ks.nothing (int)", None),
    ("GRANT EXECUTE ON FUNCTION ks.f(int) TO member", "REVOKE EXECUTE ON FUNCTION ks.f(int) FROM member"),
    ("GRANT EXECUTE ON ALL FUNCTIONS TO member", "REVOKE EXECUTE ON ALL FUNCTIONS FROM member"),
]
ROLE_STATEMENTS = [
    ("CREATE ROLE made", "DROP ROLE IF EXISTS made"),
    ("CREATE ROLE made WITH SUPERUSER = true", "DROP ROLE IF EXISTS made"),
    ("CREATE ROLE IF NOT EXISTS target", None),
    ("CREATE USER made WITH PASSWORD 'made'", "DROP ROLE IF EXISTS made"),
    ("ALTER ROLE target WITH LOGIN = true", None),
    ("ALTER ROLE target WITH SUPERUSER = false", None),
    ("ALTER ROLE target WITH ACCESS TO ALL DATACENTERS", None),
    ("ALTER ROLE member WITH LOGIN = false", None),
    ("ALTER ROLE cassandra WITH LOGIN = true", None),
    ("ALTER ROLE nothing WITH LOGIN = true", None),
    ("ALTER ROLE IF EXISTS nothing WITH LOGIN = true", None),
    ("DROP ROLE nothing", None),
    ("DROP ROLE IF EXISTS nothing", None),
    ("DROP ROLE cassandra", None),
    ("GRANT target TO member", "REVOKE target FROM member"),
    ("GRANT member TO target", "REVOKE member FROM target"),
    ("REVOKE target FROM member", None),
    ("GRANT ALTER ON ROLE target TO member", "REVOKE ALTER ON ROLE target FROM member"),
    ("GRANT ALTER ON ALL ROLES TO member", "REVOKE ALTER ON ALL ROLES FROM member"),
    ("LIST ROLES OF target", None),
    ("LIST ALL PERMISSIONS OF target", None),
    ("LIST ALL PERMISSIONS ON ROLE target", None),
    ("LIST SELECT ON ks.t", None),
    ("ADD IDENTITY 'id' TO ROLE 'target'", "DROP IDENTITY IF EXISTS 'id'"),
    ("DROP IDENTITY 'nothing'", None),
]


def speakers(resources, permissions):
    """Roles by name, each with what was granted to it: one permission on one resource."""
    for short, resource in resources:
        for permission in permissions:
            if permission in APPLICABLE[resource]:
                yield f"{permission.lower()}_{short}", f"GRANT {permission} ON {resource}"


def write(name, about, lines):
    text = f"// {about}\n// Made by scripts/access_cases.py.\n\n" + "\n".join(lines) + "\n"
    with open(os.path.join(DIRECTORY, f"{name}.cql"), "w", encoding="ascii") as out:
        out.write(text)


def by(role, statement):
    """A statement of a role; a directive of its own stays in front of it."""
    *directives, text = statement.split("\n")
    return "\n".join([f"// by {role}", *directives, f"{text};"])


def matrix(name, about, statements, resources, permissions, more=()):
    """Each statement by each role, and by one with no permission at all."""
    lines = [f"{statement};" for statement in SETUP]
    roles = [("nobody", None), *speakers(resources, permissions)]
    for role, grant in roles:
        lines.append(f"CREATE ROLE {role} WITH PASSWORD = '{role}' AND LOGIN = true;")
        if grant:
            lines.append(f"{grant} TO {role};")
        lines.extend(f"{statement} TO {role};" for statement in more)
    for statement, undo in statements:
        lines.append("")
        for role, _ in roles:
            lines.append(by(role, statement))
            if undo:
                lines.append(f"{undo};")
    write(name, about, lines)


def grants():
    """Each permission on each resource, granted, listed and revoked."""
    lines = [f"{statement};" for statement in SETUP]
    for _, resource in [*DATA, *FUNCTIONS, *ROLES, *OTHERS]:
        lines.append("")
        for permission in PERMISSIONS:
            lines.append(f"GRANT {permission} ON {resource} TO member;")
        lines.append("// unordered\nLIST ALL PERMISSIONS OF member;")
        lines.append(f"GRANT SELECT ON {resource} TO member;" if resource != "ks.nothing" else "LIST ALL ON ks.nothing;")
        for permission in PERMISSIONS:
            lines.append(f"REVOKE {permission} ON {resource} FROM member;")
        lines.append("LIST ALL PERMISSIONS OF member;")
    write("grants", "Each permission on each resource: granted, listed, revoked.", lines)


def main():
    about = "by roles that have one permission on one resource each."
    matrix("data", f"Statements about data, {about}", DATA_STATEMENTS, DATA, DATA_PERMISSIONS)
    select = ["GRANT SELECT ON ks.t", "GRANT MODIFY ON ks.t"]
    matrix("functions", f"Statements about functions, {about}", FUNCTION_STATEMENTS, FUNCTIONS, FUNCTION_PERMISSIONS, select)
    matrix("roles", f"Statements about roles, {about}", ROLE_STATEMENTS, ROLES, ROLE_PERMISSIONS)
    grants()


main()
