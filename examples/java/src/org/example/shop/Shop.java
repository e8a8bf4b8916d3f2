package org.example.shop;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.example.shop.frames.OrderSize;
import org.example.shop.frames.Ordered;
import org.example.shop.frames.Page;
import org.example.shop.frames.Ppt;
import org.example.shop.frames.Request;

/** Shop PORT: a servlet that answers /price/ITEM, and takes orders at /order/ITEM/COUNT. */
public final class Shop extends HttpServlet {
    private static final long serialVersionUID = 1;
    private static final int THREADS = 8;

    private final transient Prices prices = new Prices();

    private Shop() {
    }

    /** Starts the server; port 0 stands for any free port. */
    public static void main(String[] args) throws Exception {
        // This loads the library: from now on ppt finds the buffer, although no frame was written yet.
        if (Ppt.failure() != null)
            System.err.println("no frames: " + Ppt.failure());
        QueuedThreadPool threads = new QueuedThreadPool(THREADS);
        threads.setName("shop");
        Server server = new Server(threads);
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(args[0]));
        server.addConnector(connector);
        ServletContextHandler context = new ServletContextHandler();
        context.addServlet(new ServletHolder(new Shop()), "/");
        server.setHandler(context);
        server.start();
        System.out.println("port " + connector.getLocalPort());
        server.join();
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        // While nobody is attached, this is a load and a branch, and the scope does nothing.
        try (Request.Scope frame = Request.scope()) {
            String[] path = request.getRequestURI().split("/");
            String item = path.length > 2 ? path[2] : null;
            frame.item(item);
            String answer = null;
            if (path.length == 3 && path[1].equals("price")) {
                frame.page(Page.PRICE);
                answer = item + " " + prices.cents(item) + "\n";
            } else if (path.length == 4 && path[1].equals("order") && path[3].matches("[1-9]")) {
                frame.page(Page.ORDER);
                int count = Integer.parseInt(path[3]);
                answer = count + " " + item + " " + count * prices.cents(item) + "\n";
                Ordered.add(count);
                OrderSize.observe(count);
            }
            int status = answer == null ? 404 : 200;
            byte[] body = (answer == null ? "no such page\n" : answer).getBytes(StandardCharsets.UTF_8);
            frame.status(status).bytes(body.length);
            response.setStatus(status);
            response.setContentLength(body.length);
            response.getOutputStream().write(body);
        }
    }
}
