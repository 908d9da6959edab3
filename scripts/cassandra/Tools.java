import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Scanner;

/**
 * Runs many tools of Cassandra in one JVM, because each start of a JVM takes seconds: see `peer tools`.
 *
 * A line of the input is FILE, CLASS and arguments, with tabs between. The output of the tool goes to FILE; a line of our output is its exit code.
 */
public final class Tools {
    /** Not an `Exception`, so the tools do not catch it. */
    private static final class Exit extends Error {
        private static final long serialVersionUID = 1;
    }

    private static final class Switch extends OutputStream {
        private OutputStream target = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int value) throws IOException {
            target.write(value);
        }

        @Override
        public synchronized void write(byte[] bytes, int from, int length) throws IOException {
            target.write(bytes, from, length);
        }
    }

    /** Ignores close: sstabledump closes its output. */
    private static final class Unclosed extends PrintStream {
        Unclosed(OutputStream target) {
            super(target, true);
        }

        @Override
        public void close() {
            flush();
        }
    }

    /** The exit code of the tool's first call of exit. */
    private static Integer exitCode;

    @SuppressWarnings("removal")
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Switch printed = new Switch();
        System.setOut(new Unclosed(printed));
        System.setErr(new Unclosed(printed));
        System.setSecurityManager(new SecurityManager() {
            @Override
            public void checkPermission(java.security.Permission permission) { }

            @Override
            public void checkPermission(java.security.Permission permission, Object context) { }

            @Override
            public void checkExit(int code) {
                if (exitCode == null) {
                    exitCode = code;
                }
                throw new Exit();
            }
        });
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split("\t");
            try (OutputStream file = new java.io.BufferedOutputStream(Files.newOutputStream(Path.of(words[0])))) {
                printed.target = file;
                answers.println(run(words[1], Arrays.copyOfRange(words, 2, words.length)));
                answers.flush();
                System.out.flush();
                printed.target = new ByteArrayOutputStream();
            }
        }
        System.setSecurityManager(null);
        System.exit(0);
    }

    private static int run(String name, String[] arguments) throws ReflectiveOperationException {
        exitCode = null;
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Exit)) {
                thrown.getCause().printStackTrace();
                return 99;
            }
        }
        return exitCode == null ? 0 : exitCode;
    }
}
