import clocks.Tick;
import java.util.Scanner;
import values.Every;
import values.Little;
import values.Odd;
import values.Small;
import values.Wide;

/** values THREADS ROUNDS: values_main.c in Java. */
class Values {
    static final float[] SINGLES = {
        Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, -0.0f,
        Float.MIN_VALUE, Float.MAX_VALUE, 0.1f, 16777216
    };
    static final double[] DOUBLES = {
        Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, -0.0,
        Double.MIN_VALUE, Double.MAX_VALUE, 0.1, 9007199254740992.0
    };

    static long tv(long seconds, long micros) {
        return seconds * 1_000_000_000 + micros * 1000;
    }

    static void every(int thread, int i) {
        Every.write(
            thread, i, (byte) (i * 3), i * 5 & 0xff, (short) (i * 257), i * 263 & 0xffff, -i,
            4_000_000_000L + i, -5_000_000_000L * i, -1L - i, i * 0.25f, i / 3.0, i % 2 == 0,
            1_000_000_007L * i, tv(1_000_000_000 + i, i % 1_000_000),
            i % 3 == 0 ? Small.NONE : Small.SOME, i % 2 == 0 ? Wide.LOW : Wide.HIGH,
            "t" + thread + "-" + i, new byte[] {(byte) i, 1, 2, -1},
            new int[] {(short) i, (short) -i, 7}, new double[] {i, -0.5},
            new long[] {tv(i, 5), 0}, i % 2 == 0 ? "tab\there, back\\slash, \033[31m" : "");
    }

    /** The same by the form that can name a number without a name. */
    static void everyFilled(int thread, int i) {
        byte[] raw = {(byte) i, 1, 2, -1, 0, 77};
        Every.write(f -> {
            f.thread(thread).i(i).a((byte) (i * 3)).b(i * 5 & 0xff).c((short) (i * 257));
            f.d(i * 263 & 0xffff).e(-i).f(4_000_000_000L + i).g(-5_000_000_000L * i).h(-1L - i);
            f.x(i * 0.25f).y(i / 3.0).even(i % 2 == 0).took(1_000_000_007L * i);
            f.when(tv(1_000_000_000 + i, i % 1_000_000)).small(9);
            f.wide(i % 2 == 0 ? Wide.LOW.number() : 9_000_000_000L).name("t" + thread + "-" + i);
            f.raw(raw).three(new int[] {(short) i, (short) -i, 7}).pair(new double[] {i, -0.5});
            f.stamps(new long[] {tv(i, 5), 0});
            f.text(i % 2 == 0 ? "tab\there, back\\slash, \033[31m" : null);
            raw[0] = 99; // it has been taken
        });
    }

    static void one(int thread, int i) {
        if (i % 3 == 2)
            everyFilled(thread, i);
        else
            every(thread, i);
        Little.write(thread, i, i * 7 & 0xffff);
        boolean[] flags = new boolean[9];
        for (int bit = 0; bit < 9; bit++)
            flags[bit] = (i >> bit & 1) != 0;
        int last = i % 256;
        if (Small.of(last) != null)
            Odd.write(
                thread, i, SINGLES[i % 8], DOUBLES[i % 8], "\u00e9\u20ac\ud83d\ude00",
                "a\tb\n\\\001", new Small[] {Small.NONE, Small.MANY, Small.of(last)}, flags,
                -1L - thread, Long.MIN_VALUE + i, new long[] {-i, Long.MAX_VALUE}, tv(i + 1, 1),
                tv(i + 2, 999_999));
        else
            Odd.write(f -> f.thread(thread).i(i).f(SINGLES[i % 8]).d(DOUBLES[i % 8])
                .cut("\u00e9\u20ac\ud83d\ude00").control("a\tb\n\\\001")
                .list(new long[] {0, 200, last}).flags(flags).most(-1L - thread)
                .least(Long.MIN_VALUE + i).spans(new long[] {-i, Long.MAX_VALUE})
                .at_start(tv(i + 1, 1)).at_end(tv(i + 2, 999_999)));
        Tick.write(thread, i, i * 1_000_000_000L + i % 1_000_000_000);
    }

    public static void main(String[] args) throws InterruptedException {
        int threads = Integer.parseInt(args[0]);
        int rounds = Integer.parseInt(args[1]);
        Scanner in = new Scanner(System.in);
        clocks.Ppt.on(); // loads the libraries
        values.Ppt.on();
        System.out.println("ready");
        in.nextLine();
        Thread[] crew = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            int thread = t;
            crew[t] = new Thread(() -> {
                for (int i = 0; i < rounds; i++)
                    one(thread, i);
            });
            crew[t].start();
        }
        for (Thread thread : crew)
            thread.join();
        System.out.println("written " + 4 * threads * rounds);
        while (in.hasNextLine())
            in.nextLine();
    }
}
