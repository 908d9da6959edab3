// The Node.js driver against a server: connect, metadata, prepared statements, paging, batches, all types, errors.
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const cassandra = require('cassandra-driver');

const { types } = cassandra;
const KEYSPACE = 'check_node';
const prepare = true;

async function run(host, port, version) {
  const client = new cassandra.Client({
    contactPoints: [`${host}:${port}`],
    localDataCenter: 'datacenter1',
    protocolOptions: { maxVersion: version },
    socketOptions: { readTimeout: 60000, connectTimeout: 60000 },
    ...access(),
  });
  await client.connect();
  await connect(client);
  await metadata(client);
  await prepared(client);
  await paging(client);
  await batch(client);
  await allTypes(client, version);
  await errors(client);
  await client.execute(`DROP KEYSPACE ${KEYSPACE}`);
  await client.shutdown();
}

// How to log in and encrypt.
function access() {
  const { CHECK_USER, CHECK_PASSWORD, CHECK_CA, CHECK_CERTIFICATE } = process.env;
  const options = {};
  if (CHECK_USER) options.authProvider = new cassandra.auth.PlainTextAuthProvider(CHECK_USER, CHECK_PASSWORD);
  if (CHECK_CA) options.sslOptions = { ca: [fs.readFileSync(CHECK_CA)], rejectUnauthorized: true };
  if (CHECK_CERTIFICATE) {
    const pem = fs.readFileSync(CHECK_CERTIFICATE);
    Object.assign(options.sslOptions, { cert: pem, key: pem });
  }
  return options;
}

async function connect(client) {
  const local = (await client.execute('SELECT release_version FROM system.local')).first();
  assert.ok(local.release_version);
  await client.execute(`DROP KEYSPACE IF EXISTS ${KEYSPACE}`);
  await client.execute(
    `CREATE KEYSPACE ${KEYSPACE} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`);
  await client.execute(`USE ${KEYSPACE}`);
}

async function metadata(client) {
  await client.execute(
    'CREATE TABLE people (team text, id int, motto text STATIC, tags set<text>, PRIMARY KEY (team, id)) ' +
    'WITH CLUSTERING ORDER BY (id DESC)');
  const table = await client.metadata.getTable(KEYSPACE, 'people');
  assert.deepStrictEqual(table.partitionKeys.map(column => column.name), ['team']);
  assert.deepStrictEqual(table.clusteringKeys.map(column => column.name), ['id']);
  assert.deepStrictEqual(table.clusteringOrder, ['DESC']);
  assert.ok(table.columnsByName.tags);
}

async function prepared(client) {
  await client.execute('CREATE TABLE prepared (k int PRIMARY KEY, a text, b text)');
  await client.execute('INSERT INTO prepared (k, a, b) VALUES (?, ?, ?)', [1, 'one', null], { prepare });
  await client.execute('UPDATE prepared SET a = :a, b = :b WHERE k = :k', { k: 2, a: 'two', b: 'zwei' }, { prepare });
  const row = (await client.execute('SELECT a, b FROM prepared WHERE k = ?', [2], { prepare })).first();
  assert.deepStrictEqual([row.a, row.b], ['two', 'zwei']);
}

async function paging(client) {
  await client.execute('CREATE TABLE pages (k int, c int, PRIMARY KEY (k, c))');
  const parameters = Array.from({ length: 230 }, (_, c) => [c]);
  await cassandra.concurrent.executeConcurrent(client, 'INSERT INTO pages (k, c) VALUES (1, ?)', parameters);
  const select = 'SELECT c FROM pages WHERE k = 1';
  const first = await client.execute(select, [], { prepare, fetchSize: 50 });
  assert.strictEqual(first.rows.length, 50);
  const second = await client.execute(select, [], { prepare, fetchSize: 50, pageState: first.pageState });
  assert.strictEqual(second.first().c, 50);
  const seen = [];
  for await (const row of await client.execute(select, [], { prepare, fetchSize: 50 })) {
    seen.push(row.c);
  }
  assert.deepStrictEqual(seen, parameters.map(([c]) => c));
}

async function batch(client) {
  await client.execute('CREATE TABLE batched (k int PRIMARY KEY, v text)');
  const query = 'INSERT INTO batched (k, v) VALUES (?, ?)';
  await client.batch([{ query, params: [1, 'one'] }, { query, params: [2, 'two'] }], { prepare });
  const count = (await client.execute('SELECT COUNT(*) AS n FROM batched')).first().n;
  assert.strictEqual(count.toNumber(), 2);
  await client.execute('CREATE TABLE counted (k int PRIMARY KEY, hits counter)');
  const add = 'UPDATE counted SET hits = hits + ? WHERE k = 1';
  await client.batch([{ query: add, params: [5] }, { query: add, params: [-2] }], { prepare, counter: true });
  const hits = (await client.execute('SELECT hits FROM counted WHERE k = 1')).first().hits;
  assert.strictEqual(hits.toNumber(), 3);
}

// Types that v3 names by class, for which this driver has no codec.
const CUSTOM_IN_V3 = ['date', 'time', 'smallint', 'tinyint'];

async function allTypes(client, version) {
  await client.execute('CREATE TYPE address (street text, zip int)');
  const cases = [
    ['ascii', 'plain'],
    ['bigint', types.Long.fromString('-9223372036854775808')],
    ['blob', Buffer.from([0, 255])],
    ['boolean', true],
    ['date', types.LocalDate.fromString('2026-11-21')],
    ['decimal', types.BigDecimal.fromString('-12345678901234567890.123456789')],
    ['double', 1.5e300],
    ['duration', new types.Duration(14, 3, types.Long.fromString('4000000005'))],
    ['float', -0.5],
    ['inet', types.InetAddress.fromString('2001:db8::1')],
    ['int', 2147483647],
    ['smallint', -32768],
    ['text', 'Zürich 東京'],
    ['time', types.LocalTime.fromString('13:30:54.234567891')],
    ['timestamp', new Date(1795258800123)],
    ['timeuuid', types.TimeUuid.fromString('50554d6e-29bb-11e5-b345-feff819cdc9f')],
    ['tinyint', -128],
    ['uuid', types.Uuid.fromString('123e4567-e89b-42d3-a456-426614174000')],
    ['varint', types.Integer.fromString('1' + '0'.repeat(40))],
    ['list<int>', [3, 1, 3]],
    ['set<text>', ['a', 'b']],
    ['map<text, int>', { one: 1, two: 2 }],
    ['tuple<int, text>', new types.Tuple(1, 'a')],
    ['address', { street: 'Main', zip: 12345 }],
    ['vector<float, 3>', new Float32Array([0.5, -1, 2])],
  ];
  for (const [index, [name, value]] of cases.entries()) {
    if (version < types.protocolVersion.v4 && CUSTOM_IN_V3.includes(name)) {
      continue;
    }
    const table = `typed_${index}`;
    await client.execute(`CREATE TABLE ${table} (k int PRIMARY KEY, v ${name})`);
    await client.execute(`INSERT INTO ${table} (k, v) VALUES (?, ?)`, [1, value], { prepare });
    await client.execute(`INSERT INTO ${table} (k, v) VALUES (?, ?)`, [2, null], { prepare });
    const select = `SELECT v FROM ${table} WHERE k = ?`;
    const seen = (await client.execute(select, [1], { prepare })).first().v;
    assert.ok(isSame(value, seen), `${name}: wrote ${value}, read ${seen}`);
    assert.strictEqual((await client.execute(select, [2], { prepare })).first().v, null);
  }
}

function isSame(wrote, read) {
  if (typeof wrote.equals === 'function') {
    return wrote.equals(read);
  }
  if (wrote instanceof Float32Array) {
    return wrote.every((element, index) => element === read[index]) && read.length === wrote.length;
  }
  if (wrote.constructor === Object) {
    return Object.keys(wrote).every(key => wrote[key] === read[key]);
  }
  return JSON.stringify(wrote) === JSON.stringify(read);
}

async function errors(client) {
  const { syntaxError, invalid, alreadyExists } = types.responseErrorCodes;
  await fails(client, syntaxError, 'SELEKT 1');
  await fails(client, invalid, 'SELECT * FROM no_such_table');
  await fails(client, alreadyExists, 'CREATE TABLE people (k int PRIMARY KEY)');
}

async function fails(client, code, cql) {
  await assert.rejects(client.execute(cql), error => error.code === code);
}

async function main() {
  const [host, port] = process.argv.slice(2);
  for (const version of [types.protocolVersion.v3, types.protocolVersion.v4]) {
    await run(host, port, version);
    console.log(`node v${version}: ok`);
  }
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
