import choosing.Bytes;
import choosing.Job;
import choosing.Leg;
import choosing.LegStep;
import choosing.Plain;
import choosing.Ppt;
import choosing.Slot;
import choosing.Stamped;
import choosing.Waits;
import java.util.Scanner;

/** choosing_main.c in Java, where a block is the argument that sets the fields. */
class Choosing {
    static long n;

    public static void main(String[] args) {
        Scanner in = new Scanner(System.in);
        Ppt.on(); // loads the library
        System.out.println("ready");
        while (in.hasNextLine()) {
            int rounds = Integer.parseInt(in.nextLine());
            long[] ran = new long[7];
            for (int i = 0; i < rounds; i++) {
                n++;
                Plain.write(f -> {
                    f.n(n);
                    ran[0]++;
                });
                Stamped.write(f -> {
                    f.n(n).when(Ppt.now());
                    ran[1]++;
                });
                Job.begin(f -> {
                    f.id(n);
                    ran[2]++;
                });
                Leg.step(LegStep.leave, f -> {
                    f.id(n);
                    ran[3]++;
                });
                Leg.step(LegStep.arrive, f -> {
                    f.id(n);
                    ran[3]++;
                });
                Job.end(f -> {
                    f.id(n);
                    ran[2]++;
                });
                try (Slot.Scope slot = Slot.scope()) {
                    slot.name("java");
                    if (Slot.on())
                        ran[4]++;
                }
                Bytes.add(1);
                Waits.observe(5);
            }
            StringBuilder said = new StringBuilder("ran");
            for (long count : ran)
                said.append(' ').append(count);
            System.out.println(said);
        }
    }
}
