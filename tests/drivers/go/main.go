// The Go driver against a server: connect, metadata, prepared statements, paging, batches, all types, errors.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"reflect"
	"strconv"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/apache/cassandra-gocql-driver/v2/lz4"
	"github.com/apache/cassandra-gocql-driver/v2/snappy"
	"gopkg.in/inf.v0"
)

const keyspace = "check_go"

type dialect struct {
	version     int
	compression string
}

func main() {
	port, err := strconv.Atoi(os.Args[2])
	must(err)
	for _, d := range []dialect{{3, "none"}, {4, "none"}, {4, "lz4"}, {4, "snappy"}, {5, "none"}, {5, "lz4"}} {
		run(os.Args[1], port, d)
		fmt.Printf("go v%d %s: ok\n", d.version, d.compression)
	}
}

func connect(host string, port int, d dialect, keyspace string) *gocql.Session {
	cluster := gocql.NewCluster(host)
	cluster.Port = port
	cluster.ProtoVersion = d.version
	cluster.Keyspace = keyspace
	cluster.Timeout = time.Minute
	cluster.ConnectTimeout = time.Minute
	cluster.Consistency = gocql.One
	switch d.compression {
	case "lz4":
		cluster.Compressor = lz4.LZ4Compressor{}
	case "snappy":
		cluster.Compressor = snappy.SnappyCompressor{}
	}
	if user := os.Getenv("CHECK_USER"); user != "" {
		cluster.Authenticator = gocql.PasswordAuthenticator{Username: user, Password: os.Getenv("CHECK_PASSWORD")}
	}
	if issuers := os.Getenv("CHECK_CA"); issuers != "" {
		shown := os.Getenv("CHECK_CERTIFICATE")
		cluster.SslOpts = &gocql.SslOptions{CaPath: issuers, CertPath: shown, KeyPath: shown, EnableHostVerification: true}
	}
	session, err := cluster.CreateSession()
	must(err)
	return session
}

func run(host string, port int, d dialect) {
	admin := connect(host, port, d, "")
	exec(admin, "DROP KEYSPACE IF EXISTS "+keyspace)
	exec(admin, "CREATE KEYSPACE "+keyspace+" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
	session := connect(host, port, d, keyspace)
	metadata(session)
	prepared(session)
	paging(session)
	batch(session)
	types(session, d.version)
	failures(session)
	session.Close()
	exec(admin, "DROP KEYSPACE "+keyspace)
	admin.Close()
}

func metadata(session *gocql.Session) {
	exec(session, `CREATE TABLE people (team text, id int, motto text STATIC, tags set<text>, PRIMARY KEY (team, id))
		WITH CLUSTERING ORDER BY (id DESC)`)
	table := describe(session, "people")
	equal("team", table.PartitionKey[0].Name)
	equal("id", table.ClusteringColumns[0].Name)
	equal(gocql.DESC, table.ClusteringColumns[0].Order)
	equal(gocql.ColumnStatic, table.Columns["motto"].Kind)
}

// describe waits until the driver knows the table: it learns of it by an event.
func describe(session *gocql.Session, name string) *gocql.TableMetadata {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		keyspace, err := session.KeyspaceMetadata(keyspace)
		must(err)
		if table := keyspace.Tables[name]; table != nil {
			return table
		}
	}
	panic("no metadata of " + name)
}

func prepared(session *gocql.Session) {
	exec(session, "CREATE TABLE prepared (k int PRIMARY KEY, a text, b text)")
	exec(session, "INSERT INTO prepared (k, a, b) VALUES (?, ?, ?)", 1, "one", nil)
	exec(session, "UPDATE prepared SET a = ?, b = ? WHERE k = ?", "two", "zwei", 2)
	var a, b string
	must(session.Query("SELECT a, b FROM prepared WHERE k = ?", 2).Scan(&a, &b))
	equal("two/zwei", a+"/"+b)
	var none *string
	must(session.Query("SELECT b FROM prepared WHERE k = ?", 1).Scan(&none))
	equal((*string)(nil), none)
}

func paging(session *gocql.Session) {
	exec(session, "CREATE TABLE pages (k int, c int, PRIMARY KEY (k, c))")
	for c := 0; c < 230; c++ {
		exec(session, "INSERT INTO pages (k, c) VALUES (1, ?)", c)
	}
	iter := session.Query("SELECT c FROM pages WHERE k = 1").PageSize(50).Iter()
	equal(50, iter.NumRows())
	state := append([]byte(nil), iter.PageState()...)
	count, c := 0, 0
	for iter.Scan(&c) {
		equal(count, c)
		count++
	}
	must(iter.Close())
	equal(230, count)
	must(session.Query("SELECT c FROM pages WHERE k = 1").PageSize(50).PageState(state).Scan(&c))
	equal(50, c)
}

func batch(session *gocql.Session) {
	exec(session, "CREATE TABLE batched (k int PRIMARY KEY, v text)")
	batch := session.Batch(gocql.LoggedBatch)
	batch.Query("INSERT INTO batched (k, v) VALUES (?, ?)", 1, "bound")
	batch.Query("INSERT INTO batched (k, v) VALUES (2, 'text')")
	must(session.ExecuteBatch(batch))
	var count int
	must(session.Query("SELECT COUNT(*) FROM batched").Scan(&count))
	equal(2, count)

	exec(session, "CREATE TABLE counted (k int PRIMARY KEY, hits counter)")
	counters := session.Batch(gocql.CounterBatch)
	counters.Query("UPDATE counted SET hits = hits + ? WHERE k = 1", int64(5))
	counters.Query("UPDATE counted SET hits = hits - 2 WHERE k = 1")
	must(session.ExecuteBatch(counters))
	must(session.Query("SELECT hits FROM counted WHERE k = 1").Scan(&count))
	equal(3, count)
}

type address struct {
	Street string `cql:"street"`
	Zip    int    `cql:"zip"`
}

// isCustom is true for types that old protocol versions name by class, for which this driver has no codec.
func isCustom(name string, version int) bool {
	switch name {
	case "date", "time", "smallint", "tinyint":
		return version < 4
	case "duration":
		return version < 5
	}
	return false
}

func types(session *gocql.Session, version int) {
	exec(session, "CREATE TYPE address (street text, zip int)")
	id, err := gocql.ParseUUID("123e4567-e89b-42d3-a456-426614174000")
	must(err)
	timeID, err := gocql.ParseUUID("50554d6e-29bb-11e5-b345-feff819cdc9f")
	must(err)
	decimal, _ := new(inf.Dec).SetString("-12345678901234567890.123456789")
	large := new(big.Int).Exp(big.NewInt(10), big.NewInt(40), nil)
	cases := []struct {
		name  string
		value any
	}{
		{"ascii", "plain"},
		{"bigint", int64(-1 << 63)},
		{"blob", []byte{0, 255}},
		{"boolean", true},
		{"date", time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)},
		{"decimal", decimal},
		{"double", 1.5e300},
		{"duration", gocql.Duration{Months: 14, Days: 3, Nanoseconds: 4_000_000_005}},
		{"float", float32(-0.5)},
		{"inet", net.ParseIP("2001:db8::1")},
		{"int", int(1<<31 - 1)},
		{"smallint", int16(-1 << 15)},
		{"text", "Zürich 東京"},
		{"time", 48_654_234_567_891 * time.Nanosecond},
		{"timestamp", time.UnixMilli(1_795_258_800_123).UTC()},
		{"timeuuid", timeID},
		{"tinyint", int8(-128)},
		{"uuid", id},
		{"varint", large},
		{"list<int>", []int{3, 1, 3}},
		{"set<text>", []string{"a", "b"}},
		{"map<text, int>", map[string]int{"one": 1, "two": 2}},
		{"frozen<map<int, frozen<list<text>>>>", map[int][]string{1: {"a", "b"}}},
		{"address", address{"Main", 12345}},
		{"vector<float, 3>", []float32{0.5, -1, 2}},
	}
	for index, c := range cases {
		if isCustom(c.name, version) {
			continue
		}
		table := fmt.Sprintf("typed_%d", index)
		exec(session, fmt.Sprintf("CREATE TABLE %s (k int PRIMARY KEY, v %s)", table, c.name))
		exec(session, "INSERT INTO "+table+" (k, v) VALUES (?, ?)", 1, c.value)
		seen := reflect.New(reflect.TypeOf(c.value))
		must(session.Query("SELECT v FROM "+table+" WHERE k = ?", 1).Scan(seen.Interface()))
		if !same(c.value, seen.Elem().Interface()) {
			panic(fmt.Sprintf("%s: wrote %v, read %v", c.name, c.value, seen.Elem().Interface()))
		}
	}

	exec(session, "CREATE TABLE tupled (k int PRIMARY KEY, v tuple<int, text>)")
	// The driver counts the elements of a bound tuple as values of the statement.
	exec(session, "INSERT INTO tupled (k, v) VALUES (1, (1, 'a'))")
	var number int
	var text string
	must(session.Query("SELECT v FROM tupled WHERE k = 1").Scan(&number, &text))
	equal("1a", fmt.Sprint(number)+text)
}

func same(wrote, read any) bool {
	switch wrote := wrote.(type) {
	case *inf.Dec:
		return wrote.Cmp(read.(*inf.Dec)) == 0
	case *big.Int:
		return wrote.Cmp(read.(*big.Int)) == 0
	case net.IP:
		return wrote.Equal(read.(net.IP))
	case time.Time:
		return wrote.Equal(read.(time.Time))
	case []byte:
		return bytes.Equal(wrote, read.([]byte))
	}
	return reflect.DeepEqual(wrote, read)
}

func failures(session *gocql.Session) {
	fails(session, gocql.ErrCodeSyntax, "SELEKT 1")
	fails(session, gocql.ErrCodeInvalid, "SELECT * FROM no_such_table")
	fails(session, gocql.ErrCodeAlreadyExists, "CREATE TABLE people (k int PRIMARY KEY)")
}

func fails(session *gocql.Session, code int, cql string) {
	err := session.Query(cql).Exec()
	var failure gocql.RequestError
	if !errors.As(err, &failure) {
		panic(fmt.Sprintf("%s: no answer from the server but %v", cql, err))
	}
	equal(code, failure.Code())
}

func exec(session *gocql.Session, cql string, values ...any) {
	if err := session.Query(cql, values...).Exec(); err != nil {
		panic(fmt.Sprintf("%s: %v", cql, err))
	}
}

func equal(expected, seen any) {
	if !reflect.DeepEqual(expected, seen) {
		panic(fmt.Sprintf("expected %v, saw %v", expected, seen))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
