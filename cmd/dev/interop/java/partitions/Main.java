package partitions;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.clients.producer.UniformStickyPartitioner;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/**
 * Asks the partitioners of the Java client where records go. "keys N..." reads keys in hexadecimal, one a line, and prints each
 * with its partition of N, for each N. "sticky" prints which partitions UniformStickyPartitioner changes to.
 */
public final class Main {
    private static final int ROUNDS = 3000;
    private static final Node LEADER = new Node(1, "localhost", 9092);

    public static void main(String[] args) throws Exception {
        if (args[0].equals("keys")) {
            keys(Arrays.stream(args).skip(1).mapToInt(Integer::parseInt).toArray());
        } else {
            sticky(1, 0);
            sticky(3, 0, 1, 2);
            sticky(4, 0, 2);
            sticky(4, 3);
            sticky(3);
            sticky(6, 1, 2, 5);
        }
    }

    private static void keys(int[] counts) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null; ) {
            byte[] key = HexFormat.of().parseHex(line);
            var out = new StringBuilder(line);
            for (int n : counts) {
                out.append('\t').append(BuiltInPartitioner.partitionForKey(key, n));
            }
            System.out.println(out);
        }
    }

    /** Prints, for partitions of which some are available: from which partition (-1: at first) new batches go to which. */
    @SuppressWarnings("deprecation")
    private static void sticky(int partitions, Integer... available) {
        List<PartitionInfo> infos = new ArrayList<>();
        for (int p = 0; p < partitions; p++) {
            Node leader = Arrays.asList(available).contains(p) ? LEADER : null;
            infos.add(new PartitionInfo("t", p, leader, new Node[] {LEADER}, new Node[] {LEADER}));
        }
        var cluster = new Cluster("c", List.of(LEADER), infos, Set.of(), Set.of());
        var moves = new TreeMap<Integer, TreeSet<Integer>>();
        for (int round = 0; round < ROUNDS / 10; round++) {
            try (var partitioner = new UniformStickyPartitioner()) {
                int last = -1;
                for (int batch = 0; batch < 10; batch++) {
                    if (last >= 0) {
                        partitioner.onNewBatch("t", cluster, last);
                    }
                    byte[] key = {(byte) batch};
                    int next = partitioner.partition("t", key, key, key, key, cluster);
                    moves.computeIfAbsent(last, x -> new TreeSet<>()).add(next);
                    last = next;
                }
            }
        }
        moves.forEach((from, to) -> System.out.println(partitions + "\t" + join(Arrays.asList(available)) + "\t" + from + "\t" + join(to)));
    }

    private static String join(Iterable<Integer> numbers) {
        var words = new ArrayList<String>();
        numbers.forEach(n -> words.add(n.toString()));
        return String.join(",", words);
    }
}
