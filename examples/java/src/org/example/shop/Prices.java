package org.example.shop;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.example.shop.frames.PriceList;
import org.example.shop.frames.Supplier;

/** The price list. A supplier has it, and changes it. */
final class Prices {
    private static final int MOST_USES = 200;
    private static final long ANSWER_NS = 15_000_000;

    private Map<String, Integer> list = Map.of();
    private int uses = MOST_USES;

    /** The price of an item. */
    int cents(String item) {
        PriceList.Scope waiting = PriceList.scope();
        synchronized (this) {
            waiting.close();
            if (++uses > MOST_USES) {
                // The mistake: the lock is held during the call, so all other requests wait for it, too.
                list = ask();
                uses = 0;
            }
            return list.getOrDefault(item, 0);
        }
    }

    private static Map<String, Integer> ask() {
        try (Supplier.Scope call = Supplier.scope()) {
            // Stands for a call over the network.
            for (long end = System.nanoTime() + ANSWER_NS, left; (left = end - System.nanoTime()) > 0;)
                LockSupport.parkNanos(left);
            Map<String, Integer> list = new HashMap<>();
            for (int item = 0; item < 100; item++)
                list.put("item-" + item, 100 + item * 7 % 40);
            call.items(list.size());
            return list;
        }
    }
}
