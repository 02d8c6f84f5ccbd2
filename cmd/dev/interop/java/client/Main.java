package client;

import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.consumer.KafkaConsumer;

import report.Report;

/**
 * The interop program for Kafka's Java client: the same source is compiled against the newest and an old release, so it
 * keeps to what both have. Flags and output follow the rules that all client programs share.
 */
public final class Main {
    private Main() {
    }

    /** The library's version, as its jar says. */
    private static String version() throws Exception {
        Properties p = new Properties();
        try (InputStream in = KafkaConsumer.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            p.load(in);
        }
        return p.getProperty("version");
    }

    public static void main(String[] argv) throws Exception {
        Map<String, String> args = new HashMap<>();
        for (int i = 0; i + 1 < argv.length; i += 2) {
            args.put(argv[i].substring(2), argv[i + 1]);
        }
        String bootstrap = args.get("bootstrap");
        Report report = new Report(args.get("client"), version());
        switch (args.get("role")) {
            case "checks":
                new Checks(bootstrap, args.get("prefix"), new Corpus(args.get("corpus")), report).run(args.get("codecs").split(","));
                break;
            case "read":
                new Checks(bootstrap, null, new Corpus(args.get("corpus")), report).read(args.get("topics").split(","));
                break;
            case "member":
                new Member(bootstrap, args.get("group"), args.get("topic")).run();
                break;
            default:
                throw new IllegalArgumentException("role " + args.get("role"));
        }
        System.exit(0);
    }
}
