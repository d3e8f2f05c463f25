import com.sun.net.httpserver.HttpServer;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;

/** Serves the files of a directory over HTTP: DIRECTORY PORT. */
public class FileServer {
    public static void main(String[] arguments) throws Exception {
        Path place = Path.of(arguments[0]);
        var address = new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[1]));
        HttpServer server = HttpServer.create(address, 0);
        server.createContext("/", exchange -> {
            byte[] body = Files.readAllBytes(place.resolve(exchange.getRequestURI().getPath().substring(1)));
            exchange.sendResponseHeaders(200, body.length);
            try (OutputStream out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }
}
