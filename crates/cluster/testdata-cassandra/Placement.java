// Asks the classes of a real Cassandra where replicas are, for random topologies. It wrote placement.txt.
//
//     CP=$(ls LIB/*.jar | tr '\n' ':')                  # the jars of Cassandra 5.0.9 and its dependencies
//     java -cp "$CP" Placement.java 1 150 > placement.txt     # with Cassandra's switches for JDK 17; seed, number of topologies

import java.lang.reflect.Field;
import java.util.*;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ConsistencyLevel;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Murmur3Partitioner.LongToken;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.locator.*;

public class Placement {
    record Node(int number, String dc, String rack, TreeSet<Long> tokens) {}

    static final Map<InetAddressAndPort, Node> nodes = new HashMap<>();

    static class Snitch extends AbstractEndpointSnitch {
        public String getRack(InetAddressAndPort endpoint) { return nodes.get(endpoint).rack(); }
        public String getDatacenter(InetAddressAndPort endpoint) { return nodes.get(endpoint).dc(); }
        public int compareEndpoints(InetAddressAndPort target, Replica one, Replica other) { return 0; }
    }

    static final ConsistencyLevel[] LEVELS = {
        ConsistencyLevel.ANY, ConsistencyLevel.ONE, ConsistencyLevel.TWO, ConsistencyLevel.THREE, ConsistencyLevel.QUORUM,
        ConsistencyLevel.ALL, ConsistencyLevel.LOCAL_QUORUM, ConsistencyLevel.EACH_QUORUM, ConsistencyLevel.SERIAL,
        ConsistencyLevel.LOCAL_SERIAL, ConsistencyLevel.LOCAL_ONE };

    public static void main(String[] args) throws Exception {
        DatabaseDescriptor.clientInitialization();
        DatabaseDescriptor.setPartitionerUnsafe(Murmur3Partitioner.instance);
        Snitch snitch = new Snitch();
        DatabaseDescriptor.setEndpointSnitch(snitch);
        Random random = new Random(Long.parseLong(args[0]));
        int topologies = Integer.parseInt(args[1]);
        System.out.println("# Written by Placement.java with the classes of Cassandra 5.0.9. Do not edit.");
        for (int topology = 1; topology <= topologies; topology++) one(topology, random, snitch);
        System.exit(0);
    }

    static void one(int topology, Random random, Snitch snitch) throws Exception {
        System.out.println("topology " + topology);
        nodes.clear();
        int count = 1 + random.nextInt(10), dcs = 1 + random.nextInt(3), racks = 1 + random.nextInt(4), vnodes = 1 + random.nextInt(6);
        Set<Long> taken = new HashSet<>();
        List<Long> asked = new ArrayList<>();
        TokenMetadata metadata = new TokenMetadata(snitch);
        SortedSet<String> names = new TreeSet<>();
        for (int number = 1; number <= count; number++) {
            String dc = "dc" + (1 + random.nextInt(dcs)), rack = "r" + (1 + random.nextInt(racks));
            TreeSet<Long> tokens = new TreeSet<>();
            while (tokens.size() < vnodes) {
                long token = random.nextInt(20) == 0 ? Long.MAX_VALUE : random.nextLong();
                if (token != Long.MIN_VALUE && taken.add(token)) tokens.add(token);
            }
            InetAddressAndPort address = InetAddressAndPort.getByName("127.0.0." + number);
            names.add(dc);
            nodes.put(address, new Node(number, dc, rack, tokens));
            Collection<Token> owned = new ArrayList<>();
            for (long token : tokens) owned.add(new LongToken(token));
            metadata.updateNormalTokens(owned, address);
            StringBuilder line = new StringBuilder("node " + number + " " + dc + " " + rack);
            for (long token : tokens) line.append(' ').append(token);
            System.out.println(line);
            asked.addAll(tokens);
        }
        Collections.shuffle(asked, random);
        asked = new ArrayList<>(asked.subList(0, Math.min(6, asked.size())));
        asked.add(asked.get(0) == Long.MAX_VALUE ? Long.MIN_VALUE + 1 : asked.get(0) + 1);
        asked.add(Long.MIN_VALUE + 1);
        asked.add(Long.MAX_VALUE);
        asked.add(random.nextLong() | 1);
        for (int keyspace = 0; keyspace < 4; keyspace++) {
            Map<String, String> options = new TreeMap<>();
            AbstractReplicationStrategy strategy;
            boolean simple = keyspace == 0;
            if (simple) options.put("replication_factor", "" + (1 + random.nextInt(count + 1)));
            else for (String dc : names) if (options.isEmpty() || random.nextInt(4) > 0) options.put(dc, "" + random.nextInt(5));
            StringBuilder line = new StringBuilder("keyspace " + (simple ? "SimpleStrategy" : "NetworkTopologyStrategy"));
            options.forEach((name, value) -> line.append(' ').append(name).append('=').append(value));
            System.out.println(line);
            strategy = simple ? new SimpleStrategy("ks", metadata, snitch, options) : new NetworkTopologyStrategy("ks", metadata, snitch, options);
            for (String local : names) {
                Field field = DatabaseDescriptor.class.getDeclaredField("localDC");
                field.setAccessible(true);
                field.set(null, local);
                StringBuilder needs = new StringBuilder("needs " + local);
                for (ConsistencyLevel level : LEVELS) {
                    String need;
                    try { need = "" + level.blockFor(strategy); } catch (RuntimeException refused) { need = "refused"; }
                    needs.append(' ').append(level).append('=').append(need);
                }
                System.out.println(needs);
            }
            for (long token : asked) {
                StringBuilder at = new StringBuilder("at " + token);
                for (Replica replica : strategy.calculateNaturalReplicas(new LongToken(token), metadata)) at.append(' ').append(nodes.get(replica.endpoint()).number());
                System.out.println(at);
            }
        }
    }
}
