import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import relay.Ppt;
import relay.StockGave;
import relay.StockTook;

/** Stock PORT PRICES_PORT: says how many of an item are left; the prices know what one costs. */
final class Stock {
    private static final int THREADS = 8;

    private Stock() {
    }

    public static void main(String[] args) throws IOException {
        // This loads the library: from now on ppt finds the buffer.
        if (Ppt.failure() != null)
            System.err.println("no frames: " + Ppt.failure());
        System.setProperty("sun.net.httpserver.nodelay", "true");
        int port = Integer.parseInt(args[0]);
        String prices = "http://127.0.0.1:" + args[1];
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        AtomicInteger threads = new AtomicInteger();
        server.setExecutor(Executors.newFixedThreadPool(
            THREADS, task -> new Thread(task, "stock-" + threads.incrementAndGet())));
        server.createContext("/", exchange -> answer(exchange, prices));
        server.start();
        System.out.println("port " + server.getAddress().getPort());
    }

    private static void answer(HttpExchange exchange, String prices) throws IOException {
        StockGave.Scope handled = StockGave.scope();
        String header = exchange.getRequestHeaders().getFirst("traceparent");
        // While nobody is attached, the lambda does not run, and the scope does nothing.
        StockTook.write(f -> f.trace(trace(header)));
        String item = exchange.getRequestURI().getPath();
        int left = item.length() % 7;
        String cents = ask(prices + item, header);
        byte[] text = (left + " left, " + cents).getBytes(StandardCharsets.UTF_8);
        // A point comes before what it leads to: the frame before the answer.
        if (Ppt.on())
            handled.trace(trace(header)).left(left);
        handled.close();
        exchange.sendResponseHeaders(200, text.length);
        exchange.getResponseBody().write(text);
        exchange.close();
    }

    private static String ask(String url, String header) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) new URL(url).openConnection();
        connection.setRequestProperty("traceparent", header);
        try (InputStream in = connection.getInputStream()) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private static byte[] trace(String header) {
        return header == null ? null : HexFormat.of().parseHex(header, 3, 35);
    }
}
