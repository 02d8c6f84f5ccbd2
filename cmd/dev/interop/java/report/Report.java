package report;

import java.io.PrintStream;

/** Writes the JSON lines that the runner reads: one object a line on standard output. */
public final class Report {
    private static final PrintStream OUT = System.out; // as it was at the start: tools run with another one

    private final String client;
    private final String version;

    public Report(String client, String version) {
        this.client = client;
        this.version = version;
    }

    /** What a check does: it throws when something is wrong. */
    public interface Check {
        void run() throws Exception;
    }

    /** Runs a check, reports how it went and returns whether it went well. */
    public boolean check(String name, Check check) {
        String detail = null;
        try {
            check.run();
        } catch (Throwable e) {
            detail = e.toString();
            for (Throwable c = e.getCause(); c != null; c = c.getCause()) {
                detail += " <- " + c;
            }
        }
        line("{\"client\":" + quote(client) + ",\"version\":" + quote(version) + ",\"check\":" + quote(name)
            + ",\"ok\":" + (detail == null) + (detail == null ? "" : ",\"detail\":" + quote(detail)) + "}");
        return detail == null;
    }

    /** Writes one line, whole. */
    public static synchronized void line(String json) {
        OUT.println(json);
        OUT.flush();
    }

    /** A JSON string, ASCII only. */
    public static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') {
                b.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                b.append(String.format("\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        return b.append('"').toString();
    }
}
