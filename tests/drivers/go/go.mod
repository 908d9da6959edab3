module ilion/check

go 1.22

require github.com/apache/cassandra-gocql-driver/v2 v2.1.2
