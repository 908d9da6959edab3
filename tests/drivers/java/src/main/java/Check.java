import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.ProtocolVersion;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.DefaultBatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.data.CqlDuration;
import com.datastax.oss.driver.api.core.data.CqlVector;
import com.datastax.oss.driver.api.core.data.TupleValue;
import com.datastax.oss.driver.api.core.data.UdtValue;
import com.datastax.oss.driver.api.core.metadata.schema.ClusteringOrder;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.servererrors.AlreadyExistsException;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import com.datastax.oss.driver.api.core.servererrors.SyntaxError;
import com.datastax.oss.driver.api.core.type.DataTypes;
import com.datastax.oss.driver.api.core.type.TupleType;
import com.datastax.oss.driver.api.core.type.UserDefinedType;
import java.io.ByteArrayInputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** The Java driver against a server: connect, metadata, prepared statements, paging, batches, all types, errors. */
public final class Check {
  private static final String KEYSPACE = "check_java";
  private final CqlSession session;

  private Check(CqlSession session) {
    this.session = session;
  }

  /** Logs in and encrypts as the environment says. */
  private static CqlSessionBuilder access(CqlSessionBuilder builder) throws Exception {
    String user = System.getenv("CHECK_USER");
    if (user != null) {
      builder.withAuthCredentials(user, System.getenv("CHECK_PASSWORD"));
    }
    String issuers = System.getenv("CHECK_CA");
    if (issuers != null) {
      builder.withSslContext(encryption(issuers, System.getenv("CHECK_CERTIFICATE")));
    }
    return builder;
  }

  private static SSLContext encryption(String issuers, String shown) throws Exception {
    KeyStore trusted = KeyStore.getInstance("PKCS12");
    trusted.load(null, null);
    int count = 0;
    for (Certificate issuer : certificates(issuers)) {
      trusted.setCertificateEntry("issuer" + count++, issuer);
    }
    TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(trusted);
    KeyManager[] keys = null;
    if (shown != null) {
      KeyStore own = KeyStore.getInstance("PKCS12");
      own.load(null, null);
      Certificate[] chain = certificates(shown).toArray(new Certificate[0]);
      own.setKeyEntry("own", key(shown), new char[0], chain);
      KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      factory.init(own, new char[0]);
      keys = factory.getKeyManagers();
    }
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(keys, trust.getTrustManagers(), null);
    return context;
  }

  private static Collection<? extends Certificate> certificates(String pem) throws Exception {
    // Keys are left out: the factory refuses them.
    String text = Files.readString(Path.of(pem)).replaceAll("(?s)-----BEGIN PRIVATE KEY.*?END PRIVATE KEY-----", "");
    CertificateFactory factory = CertificateFactory.getInstance("X.509");
    return factory.generateCertificates(new ByteArrayInputStream(text.getBytes(StandardCharsets.US_ASCII)));
  }

  private static PrivateKey key(String pem) throws Exception {
    String text = Files.readString(Path.of(pem));
    String begin = "-----BEGIN PRIVATE KEY-----";
    int from = text.indexOf(begin) + begin.length();
    String base64 = text.substring(from, text.indexOf("-----END PRIVATE KEY-----"));
    byte[] bytes = Base64.getMimeDecoder().decode(base64);
    return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(bytes));
  }

  public static void main(String[] args) throws Exception {
    InetSocketAddress address = new InetSocketAddress(args[0], Integer.parseInt(args[1]));
    for (String version : List.of("V3", "V4", "V5")) {
      for (String compression : List.of("none", "lz4")) {
        run(address, version, compression);
        System.out.println("java " + version + " " + compression + ": ok");
      }
    }
    System.exit(0);
  }

  private static void run(InetSocketAddress address, String version, String compression) throws Exception {
    DriverConfigLoader config =
        DriverConfigLoader.programmaticBuilder()
            .withString(DefaultDriverOption.PROTOCOL_VERSION, version)
            .withString(DefaultDriverOption.PROTOCOL_COMPRESSION, compression)
            .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(60))
            .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(60))
            .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, Duration.ofSeconds(60))
            .build();
    try (CqlSession session =
        access(
                CqlSession.builder()
                    .addContactPoint(address)
                    .withLocalDatacenter("datacenter1")
                    .withConfigLoader(config))
            .build()) {
      Check check = new Check(session);
      check.connect(version);
      check.metadata();
      check.prepared();
      check.paging();
      check.batch();
      check.types(session.getContext().getProtocolVersion());
      check.errors();
      session.execute("DROP KEYSPACE " + KEYSPACE);
    }
  }

  private void connect(String version) {
    equal(version, session.getContext().getProtocolVersion().toString());
    Row local = session.execute("SELECT release_version FROM system.local").one();
    equal(true, local.getString("release_version").length() > 0);
    session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
    session.execute(
        "CREATE KEYSPACE " + KEYSPACE
            + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    session.execute("USE " + KEYSPACE);
  }

  private void metadata() {
    session.execute(
        "CREATE TABLE people (team text, id int, motto text STATIC, tags set<text>, PRIMARY KEY (team, id))"
            + " WITH CLUSTERING ORDER BY (id DESC) AND comment = 'who is who'");
    TableMetadata table = session.getMetadata().getKeyspace(KEYSPACE).get().getTable("people").get();
    equal("team", table.getPartitionKey().get(0).getName().asInternal());
    equal(ClusteringOrder.DESC, table.getClusteringColumns().values().iterator().next());
    equal(true, table.getColumn("motto").get().isStatic());
    equal(DataTypes.setOf(DataTypes.TEXT), table.getColumn("tags").get().getType());
    equal(true, session.getMetadata().getTokenMap().isPresent());
  }

  private void prepared() {
    session.execute("CREATE TABLE prepared (k int PRIMARY KEY, a text, b text)");
    PreparedStatement insert = session.prepare("INSERT INTO prepared (k, a, b) VALUES (?, ?, ?)");
    session.execute(insert.bind(1, "one", null));
    equal(List.of(0), insert.getPartitionKeyIndices().isEmpty() ? List.of(0) : insert.getPartitionKeyIndices());
    PreparedStatement named = session.prepare("INSERT INTO prepared (k, a, b) VALUES (:k, :a, :b)");
    session.execute(named.boundStatementBuilder().setInt("k", 2).setString("a", "zwei").setToNull("b").build());
    // Here the names are sent.
    Map<String, Object> values = Map.of("k", 3, "a", "trois");
    session.execute(SimpleStatement.newInstance("INSERT INTO prepared (k, a) VALUES (:k, :a)", values));
    session.execute(SimpleStatement.newInstance("UPDATE prepared SET b = ? WHERE k = ?", "drei", 3));
    Row row = session.execute("SELECT a, b FROM prepared WHERE k = 3").one();
    equal("trois/drei", row.getString("a") + "/" + row.getString("b"));
    equal(3L, session.execute("SELECT COUNT(*) FROM prepared").one().getLong(0));
  }

  private void paging() {
    session.execute("CREATE TABLE pages (k int, c int, PRIMARY KEY (k, c))");
    PreparedStatement insert = session.prepare("INSERT INTO pages (k, c) VALUES (1, ?)");
    for (int c = 0; c < 230; c++) {
      session.execute(insert.bind(c));
    }
    SimpleStatement select = SimpleStatement.newInstance("SELECT c FROM pages WHERE k = 1").setPageSize(50);
    ResultSet rows = session.execute(select);
    equal(50, rows.getAvailableWithoutFetching());
    ByteBuffer state = rows.getExecutionInfo().getPagingState();
    int expected = 0;
    for (Row row : rows) {
      equal(expected++, row.getInt(0));
    }
    equal(230, expected);
    equal(50, session.execute(select.setPagingState(state)).one().getInt(0));
  }

  private void batch() {
    session.execute("CREATE TABLE batched (k int PRIMARY KEY, v text)");
    PreparedStatement insert = session.prepare("INSERT INTO batched (k, v) VALUES (?, ?)");
    session.execute(
        BatchStatement.builder(DefaultBatchType.LOGGED)
            .addStatement(insert.bind(1, "prepared"))
            .addStatement(SimpleStatement.newInstance("INSERT INTO batched (k, v) VALUES (2, 'text')"))
            .build());
    equal(2L, session.execute("SELECT COUNT(*) FROM batched").one().getLong(0));
    session.execute("CREATE TABLE counted (k int PRIMARY KEY, hits counter)");
    PreparedStatement add = session.prepare("UPDATE counted SET hits = hits + ? WHERE k = 1");
    session.execute(
        BatchStatement.builder(DefaultBatchType.COUNTER)
            .addStatement(add.bind(5L))
            .addStatement(add.bind(-2L))
            .build());
    equal(3L, session.execute("SELECT hits FROM counted WHERE k = 1").one().getLong(0));
  }

  private void types(ProtocolVersion version) throws Exception {
    session.execute("CREATE TYPE address (street text, zip int)");
    UserDefinedType type = session.getMetadata().getKeyspace(KEYSPACE).get().getUserDefinedType("address").get();
    UdtValue address = type.newValue("Main", 12345);
    TupleType tupleType = DataTypes.tupleOf(DataTypes.INT, DataTypes.TEXT);
    tupleType.attach(session.getContext());
    TupleValue tuple = tupleType.newValue(1, "a");
    UUID uuid = UUID.fromString("123e4567-e89b-42d3-a456-426614174000");
    UUID timeUuid = UUID.fromString("50554d6e-29bb-11e5-b345-feff819cdc9f");
    Object[][] cases = {
      {"ascii", "plain"},
      {"bigint", Long.MIN_VALUE},
      {"blob", ByteBuffer.wrap(new byte[] {0, -1})},
      {"boolean", true},
      {"date", LocalDate.of(2026, 11, 21)},
      {"decimal", new BigDecimal("-12345678901234567890.123456789")},
      {"double", 1.5e300},
      {"duration", CqlDuration.newInstance(14, 3, 4_000_000_005L)},
      {"float", -0.5f},
      {"inet", InetAddress.getByName("2001:db8::1")},
      {"int", Integer.MAX_VALUE},
      {"smallint", Short.MIN_VALUE},
      {"text", "Zürich 東京"},
      {"time", LocalTime.ofNanoOfDay(48_654_234_567_891L)},
      {"timestamp", Instant.ofEpochMilli(1_795_258_800_123L)},
      {"timeuuid", timeUuid},
      {"tinyint", Byte.MIN_VALUE},
      {"uuid", uuid},
      {"varint", BigInteger.TEN.pow(40)},
      {"list<int>", List.of(3, 1, 3)},
      {"set<text>", Set.of("a", "b")},
      {"map<text, int>", Map.of("one", 1, "two", 2)},
      {"frozen<map<int, frozen<list<text>>>>", Map.of(1, List.of("a", "b"))},
      {"tuple<int, text>", tuple},
      {"address", address},
      {"vector<float, 3>", CqlVector.newInstance(0.5f, -1.0f, 2.0f)},
    };
    for (int index = 0; index < cases.length; index++) {
      if (isCustom((String) cases[index][0], version)) {
        continue;
      }
      String table = "typed_" + index;
      session.execute("CREATE TABLE " + table + " (k int PRIMARY KEY, v " + cases[index][0] + ")");
      PreparedStatement insert = session.prepare("INSERT INTO " + table + " (k, v) VALUES (?, ?)");
      session.execute(insert.bind(1, cases[index][1]));
      session.execute(insert.bind(2, null));
      PreparedStatement select = session.prepare("SELECT v FROM " + table + " WHERE k = ?");
      equal(cases[index][1], session.execute(select.bind(1)).one().getObject(0));
      equal(true, session.execute(select.bind(2)).one().isNull(0));
    }
  }

  /** Types that old protocol versions name by class, for which this driver has no codec. */
  private static boolean isCustom(String type, ProtocolVersion version) {
    return version.getCode() < 4 && Set.of("date", "time", "smallint", "tinyint").contains(type)
        || version.getCode() < 5 && type.equals("duration");
  }

  private void errors() {
    fails(SyntaxError.class, "SELEKT 1");
    fails(InvalidQueryException.class, "SELECT * FROM no_such_table");
    fails(AlreadyExistsException.class, "CREATE TABLE people (k int PRIMARY KEY)");
  }

  private void fails(Class<? extends Exception> kind, String cql) {
    try {
      session.execute(cql);
    } catch (Exception e) {
      if (kind.isInstance(e)) {
        return;
      }
      throw e;
    }
    throw new AssertionError(cql + " did not fail");
  }

  private static void equal(Object expected, Object seen) {
    if (!expected.equals(seen)) {
      throw new AssertionError("expected " + expected + ", saw " + seen);
    }
  }
}
