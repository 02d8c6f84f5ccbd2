package tools;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Base64;

import report.Report;

/**
 * Runs tools one after the other, as a file says, and keeps what each printed and exits with. A line of the file is: the number of the step, the
 * tool, its standard input and its arguments, separated by tabs; the last two are in base64, and each argument ends with a zero byte. Beside
 * the file, NUMBER.out gets the standard output and NUMBER.code the exit code.
 */
final class Script {
    private final Path file;
    private final Report report;

    Script(String file, Report report) {
        this.file = Paths.get(file);
        this.report = report;
    }

    void run() {
        report.check("script", () -> {
            for (String line : Files.readAllLines(file)) {
                step(line.split("\t", -1));
            }
        });
    }

    private void step(String[] fields) throws Exception {
        byte[] input = Base64.getDecoder().decode(fields[2]);
        String args = new String(Base64.getDecoder().decode(fields[3]), StandardCharsets.UTF_8);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        int code = Tool.outcome(new ByteArrayInputStream(input), out, fields[1], args.isEmpty() ? new String[0] : args.split("\0"));
        Files.write(file.resolveSibling(fields[0] + ".out"), out.toByteArray());
        Files.write(file.resolveSibling(fields[0] + ".code"), String.valueOf(code).getBytes(StandardCharsets.UTF_8));
    }
}
