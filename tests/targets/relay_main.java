import java.nio.charset.StandardCharsets;
import java.util.Scanner;
import relay.Passed;
import relay.Ppt;
import relay.Received;
import relay.Sent;

/** relay ROUNDS: relay_main.c in Java. */
class Relay {
    public static void main(String[] args) {
        int rounds = Integer.parseInt(args[0]);
        Scanner in = new Scanner(System.in);
        Ppt.on(); // loads the library
        System.out.println("ready");
        in.nextLine();
        for (int i = 0; i < rounds; i++) {
            int number = i;
            byte[] text = ("message " + i).getBytes(StandardCharsets.UTF_8);
            Sent.write(Ppt.hashU64(i), 1000 + i);
            Received.write(f -> f.id(Ppt.hashU64(number)).body(Ppt.hash128(text)).number(number));
            Passed.write(i, Ppt.hash128(text));
        }
        System.out.println("written " + 3 * rounds);
        while (in.hasNextLine())
            in.nextLine();
    }
}
