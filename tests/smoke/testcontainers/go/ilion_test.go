// The Cassandra module of Testcontainers for Go with an image of Ilion.
package testcontainers_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/cassandra"
)

var image = os.Getenv("SMOKE_TESTCONTAINERS")

func session(t *testing.T, container *cassandra.CassandraContainer) *gocql.Session {
	host, err := container.ConnectionHost(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	cluster := gocql.NewCluster(host)
	session, err := cluster.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestStarts(t *testing.T) {
	for round := 0; round < 3; round++ {
		begun := time.Now()
		container, err := cassandra.Run(context.Background(), image)
		testcontainers.CleanupContainer(t, container)
		if err != nil {
			t.Fatal(err)
		}
		t.Log("container after", time.Since(begun))
		session := session(t, container)
		t.Log("session after", time.Since(begun))
		for _, statement := range []string{
			"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
			"CREATE TABLE ks.t (k int PRIMARY KEY, v text)",
			"INSERT INTO ks.t (k, v) VALUES (1, 'one')"} {
			if err := session.Query(statement).Exec(); err != nil {
				t.Fatal(err)
			}
		}
		var value string
		if err := session.Query("SELECT v FROM ks.t WHERE k = 1").Scan(&value); err != nil || value != "one" {
			t.Fatal(err, value)
		}
		session.Close()
	}
}

func TestRunsItsScript(t *testing.T) {
	script, _ := filepath.Abs("../init.cql")
	container, err := cassandra.Run(context.Background(), image, cassandra.WithInitScripts(script))
	testcontainers.CleanupContainer(t, container)
	if err != nil {
		t.Fatal(err)
	}
	session := session(t, container)
	defer session.Close()
	var n int
	if err := session.Query("SELECT n FROM made.t WHERE k = 'a'").Scan(&n); err != nil || n != 42 {
		t.Fatal(err, n)
	}
}
