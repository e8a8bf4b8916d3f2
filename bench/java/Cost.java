import cost.BytesIn;
import cost.Handled;
import cost.Named;
import cost.Ppt;
import cost.Request;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Scanner;
import java.util.function.IntConsumer;

/** Cost ROUNDS CALLS: at each line of stdin, measures every row, C's and Java's by turns. */
class Cost {
    static final String[] NAMES = {"main", "worker-3", "acceptor", "0123456789abcdef"};

    /** An event of the JVM's own recorder, of the same fields. */
    @jdk.jfr.Name("cost.Handled")
    @jdk.jfr.StackTrace(false)
    static final class Jfr extends jdk.jfr.Event {
        int kind;
        int who;
        long a;
        long b;
    }

    static native void empty(long id, int kind, int who, long a, long b);

    static native void cRequest(int calls);

    static native void cNamed(int calls);

    static native void cHandled(int calls);

    static native void cCounter(int calls);

    static volatile long sink;

    static void loop(int calls) {
        long sum = 0;
        for (int i = 0; i < calls; i++)
            sum = sum * 31 + i;
        sink = sum;
    }

    static void emptyCalls(int calls) {
        for (int i = 0; i < calls; i++)
            empty(i, i, i >> 1, i, i);
    }

    static void request(int calls) {
        for (int i = 0; i < calls; i++)
            Request.begin(i, i, i >> 1, i, i);
    }

    static void named(int calls) {
        for (int i = 0; i < calls; i++)
            Named.write(i, i >> 1, i, i, NAMES[i & 3]);
    }

    static void handled(int calls) {
        for (int i = 0; i < calls; i++) {
            int n = i;
            try (Handled.Scope scope = Handled.scope()) {
                scope.kind(n).who(n >> 1).a(n).b(n);
            }
        }
    }

    static void counter(int calls) {
        for (int i = 0; i < calls; i++)
            BytesIn.add(i);
    }

    static void jfr(int calls) {
        for (int i = 0; i < calls; i++) {
            Jfr event = new Jfr();
            event.begin();
            event.end();
            if (event.shouldCommit()) {
                event.kind = i;
                event.who = i >> 1;
                event.a = i;
                event.b = i;
                event.commit();
            }
        }
    }

    public static void main(String[] args) {
        System.loadLibrary("cost_jni"); // has the loops of C, too
        int rounds = Integer.parseInt(args[0]);
        int calls = Integer.parseInt(args[1]);
        Map<String, IntConsumer> rows = new LinkedHashMap<>();
        rows.put("loop", Cost::loop);
        rows.put("empty JNI call", Cost::emptyCalls);
        rows.put("C: span, one tick", Cost::cRequest);
        rows.put("Java: span, one tick", Cost::request);
        rows.put("C: text, no tick", Cost::cNamed);
        rows.put("Java: text, no tick", Cost::named);
        rows.put("C: interval, two ticks", Cost::cHandled);
        rows.put("Java: interval, two ticks", Cost::handled);
        rows.put("C: counter", Cost::cCounter);
        rows.put("Java: counter", Cost::counter);
        rows.put("JFR: event, two ticks", Cost::jfr);
        if (Ppt.failure() != null)
            throw new IllegalStateException(Ppt.failure());
        Scanner in = new Scanner(System.in);
        System.out.println("ready");
        while (in.hasNextLine()) {
            boolean on = in.nextLine().equals("on");
            if (Ppt.on() != on)
                throw new IllegalStateException("it is " + (on ? "off" : "on"));
            jdk.jfr.Recording recording = on ? new jdk.jfr.Recording() : null;
            if (on)
                recording.start();
            Map<String, double[]> took = new LinkedHashMap<>();
            rows.keySet().forEach(row -> took.put(row, new double[rounds]));
            rows.values().forEach(row -> row.accept(calls)); // compiled by then
            for (int round = 0; round < rounds; round++)
                for (Map.Entry<String, IntConsumer> row : rows.entrySet()) {
                    long start = System.nanoTime();
                    row.getValue().accept(calls);
                    took.get(row.getKey())[round] = (System.nanoTime() - start) / (double) calls;
                }
            took.forEach((row, ns) -> {
                Arrays.sort(ns);
                System.out.println(row + "\t" + ns[0] + "\t" + ns[rounds / 2]);
            });
            if (on)
                recording.close();
            System.out.println("done");
        }
    }
}
