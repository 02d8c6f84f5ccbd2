package tools;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

import report.Report;

/** Kafka's dump-log over the segments that a broker left: whatever line is not known to be good is a fault. */
final class Dump {
    private static final String BATCHES = "Dumping .*|Log starting offset: \\d+|baseOffset: .* isvalid: true|\\| offset: \\d+ .*|";

    private final List<String> files;
    private final String prefix;
    private final Report report;

    Dump(String list, String prefix, Report report) throws Exception {
        files = Files.readAllLines(Paths.get(list));
        this.prefix = prefix;
        this.report = report;
    }

    void run() {
        List<String> logs = ending(".log");
        List<String> indexes = ending(".index");
        indexes.addAll(ending(".timeindex"));
        List<String> used = indexes.stream().filter(Dump::hasRecords).collect(Collectors.toList());
        List<String> plain = logs.stream().filter(f -> f.contains(prefix + "-verifiable")).collect(Collectors.toList());
        List<String> offsets = logs.stream().filter(f -> f.contains("__consumer_offsets")).collect(Collectors.toList());
        report.check("dump-log --deep-iteration", () -> {
            Lines lines = dump(BATCHES, logs, "--deep-iteration");
            lines.atLeast("\\| offset: \\d+ .*", 1);
        });
        report.check("dump-log --print-data-log", () -> {
            Lines lines = dump(BATCHES, plain, "--deep-iteration", "--print-data-log");
            lines.atLeast("\\| offset: \\d+ .* payload: \\d+", 1000); // what the verifiable producer wrote
        });
        report.check("dump-log --verify-index-only", () -> dump("Dumping .*|.* is empty\\.|", used, "--verify-index-only"));
        report.check("dump-log --index-sanity-check", () -> dump("Dumping .*|.* is empty\\.|.* passed sanity check\\.", indexes, "--index-sanity-check"));
        report.check("dump-log --offsets-decoder", () -> {
            Lines lines = dump(BATCHES, offsets, "--offsets-decoder");
            lines.atLeast(".*key: \\{.*\"group\":\"" + prefix + "-verifiable\".*payload: \\{.*\"offset\":\\d+.*", 1);
        });
    }

    /** Verifying an index beside an empty log is more than the tool can do: it throws. */
    private static boolean hasRecords(String index) {
        return new File(index.replaceAll("\\.(time)?index$", ".log")).length() > 0;
    }

    private List<String> ending(String suffix) {
        return files.stream().filter(f -> f.endsWith(suffix)).collect(Collectors.toCollection(ArrayList::new));
    }

    private static Lines dump(String good, List<String> files, String... how) throws Exception {
        if (files.isEmpty()) {
            throw new AssertionError("no such files");
        }
        Lines lines = new Lines(good);
        List<String> args = new ArrayList<>(Arrays.asList(how));
        args.add("--files");
        args.add(String.join(",", files));
        Tool.run(new ByteArrayInputStream(new byte[0]), lines, "DumpLogSegments", args.toArray(new String[0]));
        lines.close();
        if (!lines.bad.isEmpty()) {
            throw new AssertionError(String.join(" / ", lines.bad));
        }
        lines.atLeast("Dumping .*", files.size());
        return lines;
    }

    /** Takes what the tool prints, line by line: it is too much to keep. */
    private static final class Lines extends OutputStream {
        private static final int MAX_BAD = 5;

        final List<String> bad = new ArrayList<>();
        private final Pattern good;
        private final List<String> kept = new ArrayList<>();
        private final ByteArrayOutputStream line = new ByteArrayOutputStream();
        private String file = "";

        Lines(String good) {
            this.good = Pattern.compile(good);
        }

        @Override
        public void write(int b) {
            if (b == '\n') {
                end();
            } else {
                line.write(b);
            }
        }

        @Override
        public void close() {
            if (line.size() > 0) {
                end();
            }
        }

        private void end() {
            String text = line.toString();
            line.reset();
            kept.add(text.length() > 1000 ? text.substring(0, 1000) : text);
            if (text.startsWith("Dumping ")) {
                file = text;
            }
            if (bad.size() < MAX_BAD && !good.matcher(text).matches()) {
                bad.add(file + ": " + text);
            }
        }

        void atLeast(String pattern, int n) {
            Pattern p = Pattern.compile(pattern);
            long found = kept.stream().filter(s -> p.matcher(s).matches()).count();
            if (found < n) {
                throw new AssertionError(found + " instead of " + n + " lines like " + pattern);
            }
        }
    }
}
