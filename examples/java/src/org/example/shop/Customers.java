package org.example.shop;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;

/** Customers PORT CUSTOMERS REQUESTS: each customer asks for prices; every fourth request is an order. */
public final class Customers {
    private Customers() {
    }

    /** Runs the load, and prints what the customers saw. */
    public static void main(String[] args) throws InterruptedException {
        int customers = Integer.parseInt(args[1]);
        int requests = Integer.parseInt(args[2]);
        long[] took = new long[customers * requests];
        Thread[] threads = new Thread[customers];
        for (int c = 0; c < customers; c++) {
            int customer = c;
            threads[c] = new Thread(() -> shop(args[0], customer, requests, took));
            threads[c].start();
        }
        for (Thread thread : threads)
            thread.join();
        Arrays.sort(took);
        System.out.printf(
            "answers %d, half of them within %d us, 99 %% within %d us%n", took.length,
            took[took.length / 2] / 1000, took[took.length * 99 / 100] / 1000);
    }

    private static void shop(String port, int customer, int requests, long[] took) {
        HttpClient client = HttpClient.newHttpClient();
        for (int i = 0; i < requests; i++) {
            String path = i % 4 == 3 ? "order/item-" + i % 100 + "/" + (1 + i % 9) : "price/item-" + i % 100;
            HttpRequest request =
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/" + path)).build();
            long start = System.nanoTime();
            try {
                int status = client.send(request, HttpResponse.BodyHandlers.ofString()).statusCode();
                if (status != 200)
                    throw new IllegalStateException(path + ": " + status);
            } catch (IOException | InterruptedException error) {
                throw new IllegalStateException(path, error);
            }
            took[customer * requests + i] = System.nanoTime() - start;
        }
    }
}
