import com.datastax.oss.driver.api.core.CqlSession;
import org.junit.jupiter.api.Test;
import org.testcontainers.cassandra.CassandraContainer;
import org.testcontainers.utility.DockerImageName;
import java.net.InetSocketAddress;
import static org.junit.jupiter.api.Assertions.*;

/** The Cassandra module of Testcontainers for Java with an image of Ilion. */
class IlionTest {
    static DockerImageName image() {
        return DockerImageName.parse(System.getenv("SMOKE_TESTCONTAINERS")).asCompatibleSubstituteFor("cassandra");
    }

    static CqlSession session(CassandraContainer container) {
        return session(container.getContactPoint(), container.getLocalDatacenter());
    }

    static CqlSession session(InetSocketAddress contactPoint, String datacenter) {
        return CqlSession.builder().addContactPoint(contactPoint).withLocalDatacenter(datacenter).build();
    }

    static void use(CassandraContainer container, long started) {
        try (CqlSession session = session(container)) {
            System.out.println("session after " + (System.nanoTime() - started) / 1_000_000 + " ms");
            session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v text)");
            session.execute("INSERT INTO ks.t (k, v) VALUES (1, 'one')");
            assertEquals("one", session.execute("SELECT v FROM ks.t WHERE k = 1").one().getString("v"));
        }
    }

    @Test void starts() {
        for (int round = 0; round < 3; round++) {
            long started = System.nanoTime();
            try (CassandraContainer container = new CassandraContainer(image())) {
                container.start();
                System.out.println("container after " + (System.nanoTime() - started) / 1_000_000 + " ms");
                use(container, started);
            }
        }
    }

    @Test void runsItsScript() {
        try (CassandraContainer container = new CassandraContainer(image()).withInitScript("init.cql")) {
            container.start();
            try (CqlSession session = session(container)) {
                assertEquals(42, session.execute("SELECT n FROM made.t WHERE k = 'a'").one().getInt("n"));
            }
        }
    }

    @Test void takesSettings() {
        try (CassandraContainer container = new CassandraContainer(image()).withEnv("ILION_CLUSTER_NAME", "mine")) {
            container.start();
            try (CqlSession session = session(container)) {
                assertEquals("mine", session.execute("SELECT cluster_name FROM system.local").one().getString(0));
            }
        }
    }

    @SuppressWarnings("deprecation")
    @Test void theOlderClassWorksToo() {
        try (org.testcontainers.containers.CassandraContainer<?> container = new org.testcontainers.containers.CassandraContainer<>(image())) {
            container.start();
            try (CqlSession session = session(container.getContactPoint(), container.getLocalDatacenter())) {
                assertNotNull(session.execute("SELECT release_version FROM system.local").one().getString(0));
            }
        }
    }
}
