package com.cellserver.client.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;

/** The configuration of the README against a real server, with the Lettuce of Boot. CELL_SERVER_CMD is the command that starts one. */
@EnabledIfEnvironmentVariable(named = "CELL_SERVER_CMD", matches = ".+", disabledReason = "SKIP: CELL_SERVER_CMD does not name a server")
@Timeout(300)
class SpringServerTest {
    @TempDir
    Path dir;

    @EnableAutoConfiguration
    static class Empty {}

    private static boolean accepts(int port) {
        try (var socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return socket.isConnected();
        } catch (IOException e) {
            return false;
        }
    }

    /** Starts a server on a free port, which it adds to ports. Another process may take the port after it was chosen. */
    private Process launch(List<Integer> ports) throws Exception {
        while (true) {
            int port;
            try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                port = socket.getLocalPort();
            }
            var command = new ArrayList<>(List.of(System.getenv("CELL_SERVER_CMD").split(" ")));
            command.addAll(List.of("--port", Integer.toString(port), "--bind", "127.0.0.1", "--dir", dir.toString(), "--appendonly", "no"));
            var server = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(dir.resolve("log").toFile()).start();
            while (server.isAlive()) {
                if (accepts(port)) {
                    ports.add(port);
                    return server;
                }
                Thread.sleep(5); // the test has an end, see Timeout
            }
        }
    }

    @Test
    void theExampleOfTheReadme() throws Exception {
        var ports = new ArrayList<Integer>();
        var server = launch(ports);
        String readme = Files.readString(Path.of(System.getProperty("basedir", "."), "..", "README.md"));
        String yaml = readme.split("```yaml\n", 2)[1].split("```", 2)[0];
        String url = "redis://localhost:6379";
        assertThat(yaml).contains(url);
        Files.writeString(dir.resolve("application.yml"), yaml.replace(url, "redis://127.0.0.1:" + ports.get(0)));
        try (var context = new SpringApplicationBuilder(Empty.class)
                .run("--spring.config.location=" + dir + "/", "--server.port=0", "--spring.main.web-application-type=servlet",
                        "--cellserver.deadline=1s")) {
            var uri = URI.create("http://127.0.0.1:" + context.getEnvironment().getProperty("local.server.port") + "/hello");
            // The proxy in front appends the address of the client.
            var request = HttpRequest.newBuilder(uri).header("X-Forwarded-For", "198.51.100.7").build();
            var client = HttpClient.newHttpClient();
            var statuses = new ArrayList<Integer>();
            HttpResponse<String> last = null;
            for (int i = 0; i < 3; i++) {
                last = client.send(request, HttpResponse.BodyHandlers.ofString());
                statuses.add(last.statusCode());
            }
            assertThat(statuses).containsExactly(404, 404, 429); // the application serves nothing
            assertThat(last.headers().firstValue("RateLimit-Policy")).contains("\"api\";q=2");
            assertThat(last.body()).contains("quota-exceeded");
        } finally {
            server.destroyForcibly().waitFor();
        }
    }
}
