package tools;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import report.Report;

/** Every tool that talks to a broker, on topics of its own. */
final class Checks {
    private static final int PERF_RECORDS = 20_000;
    private static final int VERIFIABLE_RECORDS = 1_000;

    private final String bootstrap;
    private final String corpus;
    private final Report report;
    private final String topic;
    private final String text;
    private final String perf;
    private final String verifiable;
    private final String group;

    Checks(String bootstrap, String prefix, String corpus, Report report) {
        this.bootstrap = bootstrap;
        this.corpus = corpus;
        this.report = report;
        topic = prefix + "-topic";
        text = prefix + "-text";
        perf = prefix + "-perf";
        verifiable = prefix + "-verifiable";
        group = prefix + "-console";
    }

    void run() {
        report.check("broker-api-versions", this::apiVersions);
        report.check("topics create", this::topicsCreate);
        report.check("topics list and describe", this::topicsDescribe);
        report.check("topics alter", this::topicsAlter);
        report.check("configs of a topic", () -> configs("topics", topic, "retention.ms", "7200000"));
        report.check("configs of the broker", () -> configs("brokers", "1", "message.max.bytes", "2000000"));
        report.check("console producer and consumer", this::console);
        report.check("producer-perf-test", this::producerPerf);
        report.check("consumer-perf-test", this::consumerPerf);
        report.check("get-offsets", this::getOffsets);
        report.check("consumer-groups describe", this::groupsDescribe);
        report.check("consumer-groups reset-offsets", this::groupsReset);
        report.check("consumer-groups delete", this::groupsDelete);
        report.check("verifiable producer and consumer", this::verifiable);
        report.check("delete-records", this::deleteRecords);
        report.check("log-dirs", this::logDirs);
        report.check("topics delete", this::topicsDelete);
    }

    /** Runs a tool against the broker. */
    private String tool(String name, String... args) throws Exception {
        return Tool.run(name, with(args));
    }

    private String[] with(String... args) {
        List<String> all = new ArrayList<>(Arrays.asList("--bootstrap-server", bootstrap));
        all.addAll(Arrays.asList(args));
        return all.toArray(new String[0]);
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

    private void apiVersions() throws Exception {
        String out = tool("BrokerApiVersionsCommand");
        has(out, "\\(id: 1 rack: ");
        for (String api : new String[] {"Produce\\(0\\)", "Fetch\\(1\\)", "ListOffsets\\(2\\)", "Metadata\\(3\\)", "OffsetCommit\\(8\\)", "JoinGroup\\(11\\)",
            "ApiVersions\\(18\\)", "CreateTopics\\(19\\)", "InitProducerId\\(22\\)", "IncrementalAlterConfigs\\(44\\)"}) {
            has(out, api + ": \\d+.*\\[usable: \\d+\\]");
        }
    }

    private void createTopic(String name, String... more) throws Exception {
        List<String> args = new ArrayList<>(Arrays.asList("--create", "--topic", name));
        args.addAll(Arrays.asList(more));
        has(tool("TopicCommand", args.toArray(new String[0])), "Created topic " + name + "\\.");
    }

    private void topicsCreate() throws Exception {
        createTopic(topic, "--partitions", "3", "--replication-factor", "1", "--config", "max.message.bytes=1500000");
        createTopic(text, "--partitions", "1");
        createTopic(perf, "--partitions", "1");
        createTopic(verifiable, "--partitions", "2");
        try {
            createTopic(topic);
        } catch (AssertionError e) {
            has(e.getMessage(), "already exists");
            return;
        }
        throw new AssertionError("creating a topic again is no error");
    }

    private void topicsDescribe() throws Exception {
        has(tool("TopicCommand", "--list"), "^" + topic + "$");
        String out = tool("TopicCommand", "--describe", "--topic", topic);
        has(out, "PartitionCount: 3\\s+ReplicationFactor: 1\\s+Configs:.*max\\.message\\.bytes=1500000");
        has(out, "Partition: 2\\s+Leader: 1\\s+Replicas: 1\\s+Isr: 1");
        lacks(tool("TopicCommand", "--describe", "--under-replicated-partitions"), "Partition:");
    }

    private void topicsAlter() throws Exception {
        tool("TopicCommand", "--alter", "--topic", topic, "--partitions", "5");
        has(tool("TopicCommand", "--describe", "--topic", topic), "PartitionCount: 5");
    }

    private void configs(String type, String name, String key, String value) throws Exception {
        String[] entity = {"--entity-type", type, "--entity-name", name};
        String set = Pattern.quote(key) + "=" + value + " ";
        tool("ConfigCommand", join(entity, "--alter", "--add-config", key + "=" + value));
        has(tool("ConfigCommand", join(entity, "--describe")), set);
        has(tool("ConfigCommand", join(entity, "--describe", "--all")), set);
        tool("ConfigCommand", join(entity, "--alter", "--delete-config", key));
        lacks(tool("ConfigCommand", join(entity, "--describe")), set);
    }

    private static String[] join(String[] first, String... more) {
        String[] all = Arrays.copyOf(first, first.length + more.length);
        System.arraycopy(more, 0, all, first.length, more.length);
        return all;
    }

    /** Sends a whole text line by line, and reads it back in a group. */
    private void console() throws Exception {
        Path file = longestLicence();
        byte[] sent = Files.readAllBytes(file);
        int lines = lines();
        Tool.run(sent, "ConsoleProducer", with("--topic", text, "--compression-codec", "gzip"));
        byte[] got = Tool.run(new byte[0], "consumer.ConsoleConsumer",
            with("--topic", text, "--group", group, "--from-beginning", "--max-messages", String.valueOf(lines), "--timeout-ms", "30000")).toByteArray();
        if (!Arrays.equals(sent, got)) {
            throw new AssertionError(file + " came back with " + got.length + " bytes instead of " + sent.length);
        }
    }

    /** The first text of the corpus that ends with a line end: the console tools cannot say that one is missing. */
    private Path longestLicence() throws Exception {
        for (String line : Files.readAllLines(Paths.get(corpus))) {
            Path path = Paths.get(line.split("\t")[4]);
            byte[] b = Files.readAllBytes(path);
            String s = new String(b, StandardCharsets.UTF_8);
            if (b[b.length - 1] == '\n' && !s.contains("\r") && Arrays.equals(s.getBytes(StandardCharsets.UTF_8), b)) {
                return path;
            }
        }
        throw new IllegalStateException("no such text");
    }

    private int lines() throws Exception {
        return (int) Files.lines(longestLicence()).count();
    }

    private void producerPerf() throws Exception {
        has(Tool.run("ProducerPerformance", "--topic", perf, "--num-records", String.valueOf(PERF_RECORDS), "--record-size", "500", "--throughput", "-1",
            "--bootstrap-server", bootstrap, "--command-property", "acks=all", "compression.type=lz4"), "^" + PERF_RECORDS + " records sent, ");
    }

    private void consumerPerf() throws Exception {
        String out = tool("ConsumerPerformance", "--topic", perf, "--num-records", String.valueOf(PERF_RECORDS), "--hide-header", "--timeout", "30000");
        String[] column = out.trim().split(", ");
        if (column.length < 5 || Long.parseLong(column[4]) < PERF_RECORDS) {
            throw new AssertionError("it read " + out);
        }
    }

    private void offset(String name, String time, long want) throws Exception {
        String out = tool("GetOffsetShell", "--topic", name, "--time", time);
        has(out, "^" + name + ":0:" + want + "$");
    }

    private void getOffsets() throws Exception {
        offset(perf, "-2", 0);
        offset(perf, "-1", PERF_RECORDS);
        offset(perf, "earliest", 0);
        offset(perf, "latest", PERF_RECORDS);
        offset(perf, "1000", 0);
        String latest = tool("GetOffsetShell", "--topic", perf, "--time", "max-timestamp");
        has(latest, "^" + perf + ":0:\\d+$");
    }

    /** The numbers that describe shows for partition 0: current offset, end and lag. */
    private void group(long current, long end) throws Exception {
        String out = tool("consumer.group.ConsumerGroupCommand", "--describe", "--group", group);
        has(out, "^" + group + "\\s+" + text + "\\s+0\\s+(\\S+\\s+)?" + current + "\\s+" + end + "\\s+" + (end - current) + "\\s");
    }

    private void groupsDescribe() throws Exception {
        has(tool("consumer.group.ConsumerGroupCommand", "--list"), "^" + group + "$");
        group(lines(), lines());
        has(tool("consumer.group.ConsumerGroupCommand", "--describe", "--group", group, "--state"), "\\sEmpty\\s");
    }

    private void reset(String... how) throws Exception {
        tool("consumer.group.ConsumerGroupCommand", join(new String[] {"--reset-offsets", "--group", group, "--topic", text, "--execute"}, how));
    }

    private void groupsReset() throws Exception {
        int end = lines();
        reset("--to-earliest");
        group(0, end);
        reset("--shift-by", "7");
        group(7, end);
        reset("--to-offset", "3");
        group(3, end);
        reset("--to-datetime", "2000-01-01T00:00:00.000");
        group(0, end);
        reset("--to-latest");
        group(end, end);
        reset("--shift-by", "-2");
        byte[] rest = Tool.run(new byte[0], "consumer.ConsoleConsumer",
            with("--topic", text, "--group", group, "--max-messages", "2", "--timeout-ms", "30000")).toByteArray();
        String whole = new String(Files.readAllBytes(longestLicence()), StandardCharsets.UTF_8);
        if (rest.length == 0 || !whole.endsWith(new String(rest, StandardCharsets.UTF_8))) {
            throw new AssertionError("after the reset it read " + new String(rest, StandardCharsets.UTF_8));
        }
    }

    private void groupsDelete() throws Exception {
        tool("consumer.group.ConsumerGroupCommand", "--delete", "--group", group);
        lacks(tool("consumer.group.ConsumerGroupCommand", "--list"), "^" + group + "$");
    }

    private void verifiable() throws Exception {
        String n = String.valueOf(VERIFIABLE_RECORDS);
        String sent = Tool.process("VerifiableProducer", with("--topic", verifiable, "--max-messages", n, "--acks", "-1", "--repeating-keys", "10"));
        has(sent, "\"name\":\"tool_data\"");
        has(sent, "\"sent\":" + n);
        has(sent, "\"acked\":" + n);
        String got = Tool.process("VerifiableConsumer", with("--topic", verifiable, "--group-id", verifiable, "--max-messages", n, "--reset-policy", "earliest"));
        long count = 0;
        for (String line : got.split("\n")) {
            Matcher m = Pattern.compile("\"count\":(\\d+)").matcher(line);
            if (line.contains("\"records_consumed\"") && m.find()) {
                count += Long.parseLong(m.group(1));
            }
        }
        if (count != VERIFIABLE_RECORDS) {
            throw new AssertionError("consumed " + count + ": " + got);
        }
        has(got, "\"offsets_committed\"");
        lacks(got, "\"success\":false");
    }

    private void deleteRecords() throws Exception {
        Path json = Files.createTempFile("delete-records", ".json");
        try {
            Files.write(json, ("{\"version\":1,\"partitions\":[{\"topic\":\"" + perf + "\",\"partition\":0,\"offset\":1234}]}").getBytes(StandardCharsets.UTF_8));
            has(tool("DeleteRecordsCommand", "--offset-json-file", json.toString()), "partition: " + perf + "-0\\s+low_watermark: 1234");
        } finally {
            Files.delete(json);
        }
        offset(perf, "-2", 1234);
        offset(perf, "-1", PERF_RECORDS);
    }

    private void logDirs() throws Exception {
        String out = tool("LogDirsCommand", "--describe", "--topic-list", perf + "," + text);
        has(out, "\"error\":null");
        has(out, "\"partition\":\"" + perf + "-0\"");
        Matcher m = Pattern.compile("\"partition\":\"" + text + "-0\"[^}]*").matcher(out);
        if (!m.find()) {
            throw new AssertionError("no " + text + "-0 in: " + out);
        }
        has(m.group(), "\"size\":[1-9]\\d*");
        has(m.group(), "\"offsetLag\":0");
    }

    private void topicsDelete() throws Exception {
        tool("TopicCommand", "--delete", "--topic", topic);
        lacks(tool("TopicCommand", "--list"), "^" + topic + "$");
    }
}
