import errands.Errand;
import errands.ErrandEdge;
import errands.Idle;
import errands.Leg;
import errands.LegStep;
import errands.Verb;
import errands.Visit;
import java.util.Scanner;
import java.util.concurrent.CyclicBarrier;

/** errands THREADS ROUNDS: errands_main.c in Java. */
class Errands {
    static void takeIn(int thread, int i) {
        Errand.begin((long) thread << 32 | i, thread, i % 2 == 0 ? Verb.GET : Verb.PUT);
        Leg.step(LegStep.leave, (long) thread << 32 | i, thread);
        Visit.begin(f -> f.name(thread + "-" + i).thread(thread).when(1000 + i));
    }

    static void done(int thread, int of, int i) {
        Leg.step(LegStep.pass_, f -> f.id((long) of << 32 | i).thread(thread));
        Leg.step(LegStep.of(2), (long) of << 32 | i, thread);
        Visit.end(of + "-" + i, thread, 2000 + i);
        Errand.end(f -> f.bytes(i * 7).thread(thread).id((long) of << 32 | i));
    }

    static void work(int thread, int threads, int rounds, CyclicBarrier allHaveBegun) {
        for (int i = 0; i < rounds; i++)
            takeIn(thread, i);
        try {
            allHaveBegun.await();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
        for (int i = 0; i < rounds; i++)
            done(thread, (thread + threads - 1) % threads, i);
        Idle.write(thread);
    }

    public static void main(String[] args) throws InterruptedException {
        int threads = Integer.parseInt(args[0]);
        int rounds = Integer.parseInt(args[1]);
        Scanner in = new Scanner(System.in);
        if (ErrandEdge.end.number() != 1)
            throw new IllegalStateException("an end is 1");
        Leg.step(null, 1, 1); // while nobody is attached, nothing is looked at
        System.out.println("ready");
        in.nextLine();
        CyclicBarrier allHaveBegun = new CyclicBarrier(threads);
        Thread[] crew = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            int thread = t;
            crew[t] = new Thread(() -> work(thread, threads, rounds, allHaveBegun));
            crew[t].start();
        }
        for (Thread thread : crew)
            thread.join();
        try {
            Leg.step(null, 1, 1);
            throw new IllegalStateException("a step is needed");
        } catch (IllegalArgumentException error) {
            if (!error.getMessage().equals("leg.step (LegStep): null is none"))
                throw error;
        }
        System.out.println("written " + threads * (7 * rounds + 1));
        while (in.hasNextLine())
            in.nextLine();
    }
}
