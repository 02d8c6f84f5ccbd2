package client;

/** Writes the JSON lines that the runner reads: one object a line on standard output. */
final class Report {
    private final String client;
    private final String version;

    Report(String client, String version) {
        this.client = client;
        this.version = version;
    }

    interface Check {
        void run() throws Exception;
    }

    /** Runs a check, reports how it went and returns whether it went well. */
    boolean check(String name, Check check) {
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

    static synchronized void line(String json) {
        System.out.println(json);
        System.out.flush();
    }

    static String quote(String s) {
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
