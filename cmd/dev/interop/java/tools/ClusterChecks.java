package tools;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;

import report.Report;

/** The tools for replicas, leaders and groups, on a cluster of the brokers 1, 2 and 3. */
final class ClusterChecks {
    private static final int RECORDS = 12_000; // of 1000 bytes: more than a follower fetches at once, for each of three partitions

    private final String bootstrap;
    private final Report report;
    private final String topic;
    private final String group;

    ClusterChecks(String bootstrap, String prefix, Report report) {
        this.bootstrap = bootstrap;
        this.report = report;
        topic = prefix + "-replicated";
        group = prefix + "-readers";
    }

    void run() {
        report.check("topics create with assigned replicas", this::create);
        report.check("producer-perf-test with acks=all", this::produce);
        report.check("reassign-partitions --generate", this::generate);
        report.check("reassign-partitions --execute and --verify", this::move);
        report.check("reassign-partitions --list and --cancel", this::cancel);
        report.check("reassign-partitions with a throttle", this::throttle);
        report.check("leader-election", this::elect);
        report.check("consumer-groups", this::groups);
        report.check("log-dirs of three brokers", this::logDirs);
        report.check("topics delete", this::delete);
    }

    private String tool(String name, String... args) throws Exception {
        List<String> all = new ArrayList<>(Arrays.asList("--bootstrap-server", bootstrap));
        all.addAll(Arrays.asList(args));
        return Tool.run(name, all.toArray(new String[0]));
    }

    private static void has(String output, String pattern) {
        if (!Pattern.compile(pattern, Pattern.MULTILINE).matcher(output).find()) {
            throw new AssertionError("no /" + pattern + "/ in: " + output);
        }
    }

    private static void lacks(String output, String pattern) {
        if (Pattern.compile(pattern, Pattern.MULTILINE).matcher(output).find()) {
            throw new AssertionError("/" + pattern + "/ in: " + output);
        }
    }

    private String describe() throws Exception {
        return tool("TopicCommand", "--describe", "--topic", topic);
    }

    /** Waits until describe shows a partition so. */
    private void until(String pattern) throws Exception {
        String out = "";
        for (int i = 0; i < 300; i++) {
            out = describe();
            if (Pattern.compile(pattern, Pattern.MULTILINE).matcher(out).find()) {
                return;
            }
            Thread.sleep(100);
        }
        has(out, pattern);
    }

    private void create() throws Exception {
        has(tool("TopicCommand", "--create", "--topic", topic, "--replica-assignment", "1:2:3,2:3:1,3:1:2", "--config", "min.insync.replicas=2"),
            "Created topic " + topic + "\\.");
        until("Partition: 0\\s+Leader: 1\\s+Replicas: 1,2,3\\s+Isr: 1,2,3");
        until("Partition: 2\\s+Leader: 3\\s+Replicas: 3,1,2\\s+Isr: 3,1,2");
        lacks(tool("TopicCommand", "--describe", "--topic", topic, "--under-replicated-partitions"), "Partition:");
        lacks(tool("TopicCommand", "--describe", "--topic", topic, "--unavailable-partitions"), "Partition:");
        lacks(tool("TopicCommand", "--describe", "--topic", topic, "--at-min-isr-partitions"), "Partition:");
    }

    private void produce() throws Exception {
        has(Tool.run("ProducerPerformance", "--topic", topic, "--num-records", String.valueOf(RECORDS), "--record-size", "1000", "--throughput", "-1",
            "--producer-props", "bootstrap.servers=" + bootstrap, "acks=all", "batch.size=1000", "linger.ms=0"), "^" + RECORDS + " records sent, ");
    }

    private static Path file(String json) throws Exception {
        Path file = Files.createTempFile("reassign", ".json");
        Files.write(file, json.getBytes(StandardCharsets.UTF_8));
        file.toFile().deleteOnExit();
        return file;
    }

    private Path plan(int partition, String replicas) throws Exception {
        return file("{\"version\":1,\"partitions\":[{\"topic\":\"" + topic + "\",\"partition\":" + partition + ",\"replicas\":[" + replicas + "]}]}");
    }

    private String reassign(String... args) throws Exception {
        return tool("reassign.ReassignPartitionsCommand", args);
    }

    /** Waits until verify says that a partition has moved. It takes throttles away then. */
    private String verified(Path plan, int partition) throws Exception {
        String out = "";
        for (int i = 0; i < 300; i++) {
            out = reassign("--verify", "--reassignment-json-file", plan.toString());
            if (out.contains("Reassignment of partition " + topic + "-" + partition + " is completed.")) {
                return out;
            }
            Thread.sleep(100);
        }
        throw new AssertionError("not completed: " + out);
    }

    private void generate() throws Exception {
        Path topics = file("{\"version\":1,\"topics\":[{\"topic\":\"" + topic + "\"}]}");
        String out = reassign("--generate", "--topics-to-move-json-file", topics.toString(), "--broker-list", "1,2,3");
        has(out, "Current partition replica assignment");
        has(out, "\"topic\":\"" + topic + "\",\"partition\":0,\"replicas\":\\[1,2,3\\]");
        has(out, "Proposed partition reassignment configuration");
    }

    private void move() throws Exception {
        Path plan = plan(0, "2,3");
        has(reassign("--execute", "--reassignment-json-file", plan.toString()), "Successfully started partition reassignment for " + topic + "-0");
        verified(plan, 0);
        until("Partition: 0\\s+Leader: [23]\\s+Replicas: 2,3\\s+Isr: (2,3|3,2)\\s");
        has(reassign("--list"), "No partition reassignments found");
    }

    /** A move that adds and removes: the tool of 3.9 doesn't find one that only adds when it shall cancel it. */
    private void cancel() throws Exception {
        Path plan = plan(0, "2,1");
        has(reassign("--execute", "--reassignment-json-file", plan.toString(), "--throttle", "1000"), "Successfully started partition reassignment for " + topic + "-0");
        has(reassign("--list"), topic + "-0: replicas: 2,1,3\\. adding: 1\\. removing: 3\\.");
        until("Partition: 0.*Adding Replicas: 1.*Removing Replicas: 3");
        has(reassign("--cancel", "--reassignment-json-file", plan.toString()), "Successfully cancelled partition reassignment for: " + topic + "-0");
        until("Partition: 0\\s+Leader: [23]\\s+Replicas: 2,3\\s+Isr: (2,3|3,2)\\s");
        has(reassign("--list"), "No partition reassignments found");
        lacks(describe(), "throttled");
    }

    private void throttle() throws Exception {
        Path plan = plan(0, "2,3,1");
        has(reassign("--execute", "--reassignment-json-file", plan.toString(), "--throttle", "50000000"), "The inter-broker throttle limit was set to 50000000 B/s");
        String out = verified(plan, 0);
        has(out, "Clearing broker-level throttles on brokers 1,2,3");
        has(out, "Clearing topic-level throttles on topic " + topic);
        until("Partition: 0\\s+Leader: [23]\\s+Replicas: 2,3,1\\s+Isr: \\d,\\d,\\d");
        lacks(describe(), "throttled");
    }

    private void elect() throws Exception {
        Path order = plan(1, "3,2,1");
        reassign("--execute", "--reassignment-json-file", order.toString());
        verified(order, 1);
        until("Partition: 1\\s+Leader: 2\\s+Replicas: 3,2,1");
        has(tool("LeaderElectionCommand", "--election-type", "preferred", "--topic", topic, "--partition", "1"),
            "Successfully completed leader election \\(PREFERRED\\) for partitions " + topic + "-1");
        until("Partition: 1\\s+Leader: 3\\s+Replicas: 3,2,1");
        has(tool("LeaderElectionCommand", "--election-type", "preferred", "--topic", topic, "--partition", "1"), "Valid replica already elected for partitions");
        tool("LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions");
        has(tool("LeaderElectionCommand", "--election-type", "unclean", "--topic", topic, "--partition", "0"), "Valid replica already elected for partitions");
    }

    private void groups() throws Exception {
        Tool.run(new byte[0], "consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, "--topic", topic, "--group", group, "--from-beginning",
            "--max-messages", String.valueOf(RECORDS), "--timeout-ms", "60000");
        String command = "consumer.group.ConsumerGroupCommand";
        has(tool(command, "--list"), "^" + group + "$");
        String out = tool(command, "--describe", "--group", group);
        for (int p = 0; p < 3; p++) {
            has(out, "^" + group + "\\s+" + topic + "\\s+" + p + "\\s+\\d+\\s+\\d+\\s+0\\s");
        }
        has(tool(command, "--describe", "--group", group, "--state"), "127\\.0\\.0\\.1:\\d+\\s+\\([123]\\)\\s.*Empty\\s+0");
        tool(command, "--reset-offsets", "--group", group, "--topic", topic + ":2", "--to-earliest", "--execute");
        has(tool(command, "--describe", "--group", group), "^" + group + "\\s+" + topic + "\\s+2\\s+0\\s+\\d+\\s+[1-9]");
        tool(command, "--delete", "--group", group);
        lacks(tool(command, "--list"), "^" + group + "$");
    }

    private void logDirs() throws Exception {
        String out = tool("LogDirsCommand", "--describe", "--topic-list", topic);
        for (int broker = 1; broker <= 3; broker++) {
            has(out, "\"broker\":" + broker);
        }
        has(out, "\"partition\":\"" + topic + "-1\",\"size\":[1-9]");
        lacks(out, "\"error\":\"");
    }

    private void delete() throws Exception {
        tool("TopicCommand", "--delete", "--topic", topic);
        lacks(tool("TopicCommand", "--list"), "^" + topic + "$");
    }
}
