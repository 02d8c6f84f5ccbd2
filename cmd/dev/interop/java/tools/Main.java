package tools;

import java.util.HashMap;
import java.util.Map;

import report.Report;

/** The interop program for Kafka's own command-line tools: all of them in one JVM, which takes as long to start as any of them runs. */
public final class Main {
    private Main() {
    }

    public static void main(String[] argv) throws Exception {
        Map<String, String> args = new HashMap<>();
        for (int i = 0; i + 1 < argv.length; i += 2) {
            args.put(argv[i].substring(2), argv[i + 1]);
        }
        String version = Tool.class.getClassLoader().loadClass("org.apache.kafka.tools.TopicCommand").getProtectionDomain()
            .getCodeSource().getLocation().getPath().replaceAll(".*kafka-tools-(.*)\\.jar", "$1");
        Report report = new Report(args.get("client"), version);
        Tool.takeOverExit();
        switch (args.get("role")) {
            case "checks":
                new Checks(args.get("bootstrap"), args.get("prefix"), args.get("corpus"), report).run();
                break;
            case "cluster":
                new ClusterChecks(args.get("bootstrap"), args.get("prefix"), report).run();
                break;
            case "dump":
                new Dump(args.get("corpus"), args.get("prefix"), report).run();
                break;
            case "script":
                new Script(args.get("corpus"), report).run();
                break;
            default:
                throw new IllegalArgumentException("role " + args.get("role"));
        }
        Runtime.getRuntime().halt(0); // whatever threads tools have left
    }
}
