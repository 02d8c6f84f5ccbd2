package tools;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Runs the main method of one of Kafka's command-line tools inside this JVM, as if it were a process of its own: with its own
 * standard input and output, and with an exit that ends the tool alone.
 */
final class Tool {
    private static final String PACKAGE = "org.apache.kafka.tools.";

    private static final int NONE = -1;

    /** The code that the running tool ended with. */
    private static final AtomicInteger FIRST_CODE = new AtomicInteger(NONE);

    /** Thrown where the tool would have ended its process. */
    private static final class Exited extends Error {
        private static final long serialVersionUID = 1L;

        Exited(int code) {
            super("exit " + code, null, false, false);
        }
    }

    private Tool() {
    }

    /** Must be called once, before the first tool runs. Where Kafka keeps its Exit differs from release to release. */
    static void takeOverExit() throws Exception {
        Class<?> exit;
        try {
            exit = Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException e) {
            exit = Class.forName("org.apache.kafka.common.utils.Exit"); // 3.9
        }
        InvocationHandler end = (self, method, args) -> {
            FIRST_CODE.compareAndSet(NONE, (Integer) args[0]); // a tool that catches everything, this too, exits a second time
            throw new Exited((Integer) args[0]);
        };
        replace(exit, "setExitProcedure", end);
        replace(exit, "setHaltProcedure", end);
        replace(exit, "setShutdownHookAdder", (self, method, args) -> null); // these tools have nothing to shut down when they end by themselves
    }

    /** Calls a setter of a functional interface. */
    private static void replace(Class<?> exit, String setter, InvocationHandler by) throws Exception {
        for (Method method : exit.getMethods()) {
            if (method.getName().equals(setter)) {
                Class<?> type = method.getParameterTypes()[0];
                method.invoke(null, Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, by));
                return;
            }
        }
        throw new NoSuchMethodException(setter);
    }

    /** Runs a tool that needs no input and returns what it printed. */
    static String run(String name, String... args) throws Exception {
        return run(new byte[0], name, args).toString("UTF-8");
    }

    /** Runs a tool with a standard input and returns what it wrote to its standard output. */
    static ByteArrayOutputStream run(byte[] input, String name, String... args) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        run(new ByteArrayInputStream(input), out, name, args);
        return out;
    }

    /** Runs a tool; an exit code other than 0 is an exception that shows what the tool said. */
    static void run(InputStream input, OutputStream output, String name, String... args) throws Exception {
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        int code = run(input, output, errors, name, args);
        if (code != 0) {
            throw new AssertionError(name + " exits " + code + tail(errors) + tail(output));
        }
    }

    /** Runs a tool and returns its exit code, which is 1 for one that throws. */
    static int outcome(InputStream input, OutputStream output, String name, String... args) throws Exception {
        try {
            return run(input, output, new ByteArrayOutputStream(), name, args);
        } catch (AssertionError e) {
            return 1;
        }
    }

    private static int run(InputStream input, OutputStream output, OutputStream errors, String name, String... args) throws Exception {
        InputStream stdin = System.in;
        PrintStream stdout = System.out;
        PrintStream stderr = System.err;
        FIRST_CODE.set(NONE);
        System.setIn(input);
        System.setOut(new PrintStream(output, true, "UTF-8"));
        System.setErr(new PrintStream(errors, true, "UTF-8"));
        try {
            Class.forName(PACKAGE + name).getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Exited)) {
                throw new AssertionError(name + " threw " + e.getCause() + tail(errors) + tail(output));
            }
        } finally {
            System.out.flush();
            System.setIn(stdin);
            System.setOut(stdout);
            System.setErr(stderr);
        }
        return Math.max(FIRST_CODE.get(), 0);
    }

    /** Runs a tool in a JVM of its own, for those that do their last work when the JVM shuts down, and returns what it printed. */
    static String process(String name, String... args) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Paths.get(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(Arrays.asList("-cp", System.getProperty("java.class.path"), PACKAGE + name));
        command.addAll(Arrays.asList(args));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.getOutputStream().close();
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        process.getInputStream().transferTo(out);
        if (process.waitFor() != 0) {
            throw new AssertionError(name + " exits " + process.exitValue() + tail(out));
        }
        return out.toString("UTF-8");
    }

    private static String tail(OutputStream out) {
        String text = out instanceof ByteArrayOutputStream ? out.toString().trim() : "";
        return text.isEmpty() ? "" : "; it said: " + text.substring(Math.max(0, text.length() - 800));
    }
}
