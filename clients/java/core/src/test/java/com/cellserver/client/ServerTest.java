package com.cellserver.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;

/** Against real servers: CELL_SERVER_CMD is the command that starts one. */
@EnabledIfEnvironmentVariable(named = "CELL_SERVER_CMD", matches = ".+", disabledReason = "SKIP: CELL_SERVER_CMD does not name a server")
@Timeout(120)
class ServerTest {
    @TempDir
    Path dir;

    private int port;
    private Process server;
    private final List<AutoCloseable> opened = new ArrayList<>();

    /** Starts a server on a free port. Another process may take the port after it was chosen. */
    @BeforeEach
    void begin() throws Exception {
        for (int i = 0; ; i++) {
            port = freePort();
            try {
                launch();
                return;
            } catch (IllegalStateException e) {
                if (i == 4) {
                    throw e;
                }
            }
        }
    }

    @AfterEach
    void end() throws Exception {
        for (AutoCloseable each : opened) {
            each.close();
        }
        stop();
    }

    private static int freePort() throws IOException {
        try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private void launch(String... options) throws Exception {
        var command = new ArrayList<>(List.of(System.getenv("CELL_SERVER_CMD").split(" ")));
        command.addAll(List.of("--port", Integer.toString(port), "--bind", "127.0.0.1", "--dir", dir.toString(), "--appendonly", "no"));
        command.addAll(List.of(options));
        server = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(dir.resolve("log").toFile()).start();
        until(() -> accepts());
    }

    private boolean accepts() {
        if (!server.isAlive()) {
            throw new IllegalStateException("the server has ended");
        }
        try (var socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return socket.isConnected();
        } catch (IOException e) {
            return false;
        }
    }

    private void stop() throws Exception {
        server.destroyForcibly().waitFor();
    }

    private void signal(String name) throws Exception {
        new ProcessBuilder("kill", "-" + name, Long.toString(server.pid())).start().waitFor();
    }

    private static void until(BooleanSupplier condition) throws InterruptedException {
        while (!condition.getAsBoolean()) {
            Thread.sleep(5); // the tests have an end, see Timeout
        }
    }

    private Object command(String... words) {
        var client = RedisClient.create(RedisURI.create("127.0.0.1", port));
        try (var connection = client.connect(StringCodec.UTF8)) {
            var args = new CommandArgs<>(StringCodec.UTF8);
            for (int i = 1; i < words.length; i++) {
                args.add(words[i]);
            }
            return connection.sync().dispatch(new Name(words[0]), new NestedMultiOutput<>(StringCodec.UTF8), args);
        } finally {
            client.shutdown(Duration.ZERO, Duration.ofSeconds(1));
        }
    }

    private record Name(String text) implements ProtocolKeyword {
        @Override
        public byte[] getBytes() {
            return text.getBytes(StandardCharsets.US_ASCII);
        }

        @Override
        @Deprecated
        public String name() {
            return text;
        }
    }

    private LimiterOptions<String> options() {
        return at(port).deadline(Duration.ofSeconds(1));
    }

    private static LimiterOptions<String> at(int port) {
        return Limiter.<String>builder().url("redis://127.0.0.1:" + port).key(k -> k).onUnavailable(OnUnavailable.DENY);
    }

    private <R> Limiter<R> open(LimiterOptions<R> options) {
        var limiter = options.build();
        opened.add(limiter);
        return limiter;
    }

    @Test
    void aPolicyItsFieldsAndADenial() {
        command("RL.POLICY", "SET", "api", "LIMITS", "TB", "2", "1", "1h", "SW", "10", "1d", "FIXED");
        var limiter = open(options().policy("api").onUnavailable(OnUnavailable.LOCAL).instances(1));
        limiter.start();
        var first = limiter.check("k");
        assertEquals("\"api\";q=2, \"api#2\";q=10;w=86400", HttpAnswer.of(first, HeaderStyle.DRAFT).fields().get("RateLimit-Policy"));
        assertTrue(limiter.checkAsync("k").join().allowed());
        assertFalse(limiter.check("k").allowed());
        assertEquals(Source.CACHE, limiter.check("k").source());
        assertEquals(Source.SERVER, limiter.check("ключ\r\n").source());
    }

    @Test
    void aConfigurationThatTheServerRefuses() throws Exception {
        var limiter = open(options().policy("nope").onUnavailable(OnUnavailable.ALLOW));
        assertThrows(ConfigurationException.class, limiter::start);
        assertThrows(ConfigurationException.class, () -> limiter.check("k"));
        stop();
        launch("--requirepass", "secret");
        for (var uri : List.of("redis://127.0.0.1:" + port, "redis://:wrong@127.0.0.1:" + port)) {
            var other = open(options().url(uri).policy("api").onUnavailable(OnUnavailable.ALLOW));
            assertThrows(ConfigurationException.class, other::start);
            assertThrows(ConfigurationException.class, () -> other.check("k"));
        }
        assertTrue(open(options().url("redis://:secret@127.0.0.1:" + port).limits("TB 1 1 1h")).check("k").allowed());
    }

    @Test
    void twoInstancesWith64CallersEachAdmitExactlyTheLimit() throws Exception {
        var admitted = new AtomicInteger();
        var unavailable = new AtomicInteger();
        var threads = new ArrayList<Thread>();
        for (int instance = 0; instance < 2; instance++) {
            var limiter = open(options().limits("SW 1000 1d FIXED").denialCache(Duration.ZERO));
            limiter.check("other");
            for (int caller = 0; caller < 64; caller++) {
                boolean async = caller % 2 == 0;
                threads.add(new Thread(() -> {
                    for (int i = 0; i < 10; i++) {
                        var result = async ? limiter.checkAsync("k").join() : limiter.check("k");
                        admitted.addAndGet(result.allowed() ? 1 : 0);
                        unavailable.addAndGet(result.source() == Source.UNAVAILABLE ? 1 : 0);
                    }
                }));
            }
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        if (unavailable.get() == 0) {
            assertEquals(1000, admitted.get());
        } else {
            assertTrue(admitted.get() <= 1000, admitted + " admitted");
        }
    }

    @Test
    void aServerThatHangsAndGoesOn() throws Exception {
        var options = options().limits("TB 1000 1 1h").onUnavailable(OnUnavailable.LOCAL).instances(2);
        var limiter = open(options.deadline(Duration.ofMillis(100)));
        until(() -> limiter.check("k").source() == Source.SERVER);
        signal("STOP");
        until(() -> limiter.check("k").source() == Source.LOCAL);
        long began = System.nanoTime();
        for (int i = 0; i < 20; i++) {
            limiter.check("k");
        }
        long took = System.nanoTime() - began;
        assertTrue(took < Duration.ofSeconds(5).toNanos(), "20 calls of a hung server took " + Duration.ofNanos(took));
        signal("CONT");
        until(() -> limiter.check("k").source() == Source.SERVER);
    }

    @Test
    void aServerThatIsKilledAndStartedAgain() throws Exception {
        var limiter = open(options().limits("TB 1000 1 1h"));
        until(() -> limiter.check("k").source() == Source.SERVER);
        stop();
        var denied = limiter.check("k");
        assertFalse(denied.allowed());
        assertEquals(503, HttpAnswer.of(denied, HeaderStyle.DRAFT).status());
        launch();
        until(() -> limiter.check("k").source() == Source.SERVER);
    }

    @Test
    void aProxyThatEndsConnectionsBeforeTheirReplies() throws Exception {
        try (var proxy = new Lossy(port)) {
            var options = at(proxy.port()).deadline(Duration.ofSeconds(1)).limits("SW 100 1d FIXED");
            var limiter = open(options.retry(true).denialCache(Duration.ZERO));
            int admitted = 0;
            int decided = 0;
            for (int i = 0; i < 200; i++) {
                var result = limiter.check("k");
                admitted += result.allowed() ? 1 : 0;
                decided += result.source() == Source.SERVER ? 1 : 0;
            }
            assertTrue(decided > 100, decided + " of 200 decided");
            assertTrue(admitted <= 100, admitted + " admitted");
            if (decided == 200) {
                assertEquals(100, admitted, "a call that is sent again counts once");
            }
        }
    }

    @Test
    void aReservation() {
        command("RL.POLICY", "SET", "tokens", "LIMITS", "TB", "1000", "1", "1h");
        var limiter = open(options().policy("tokens"));
        try (var reservation = limiter.reserve("k", 800, Duration.ofSeconds(30))) {
            assertEquals(200, reservation.result().remaining());
            reservation.commit(950);
        }
        assertEquals(50, limiter.check("k", 0).remaining());
        limiter.reserve("k", 50, Duration.ofSeconds(30)).close();
        assertEquals(50, limiter.check("k", 0).remaining());
    }

    @Test
    void aClosedLimiterLeavesNoThread() throws Exception {
        var limiter = open(options().limits("TB 1000 1 1h"));
        until(() -> limiter.check("k").source() == Source.SERVER);
        assertTrue(threads().stream().allMatch(Thread::isDaemon), "an application ends without close");
        limiter.close();
        until(() -> threads().isEmpty());
        assertEquals(Source.UNAVAILABLE, limiter.check("k").source());
    }

    private static List<Thread> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("lettuce-") || thread.getName().startsWith("cellserver-"))
                .toList();
    }

    /** A proxy that ends the connection in place of each tenth reply. */
    private static final class Lossy implements AutoCloseable {
        private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        private final int upstream;
        private final AtomicInteger replies = new AtomicInteger();

        Lossy(int upstream) throws IOException {
            this.upstream = upstream;
            daemon(this::accept);
        }

        int port() {
            return listener.getLocalPort();
        }

        private static void daemon(Runnable work) {
            var thread = new Thread(work);
            thread.setDaemon(true);
            thread.start();
        }

        private void accept() {
            while (!listener.isClosed()) {
                try {
                    var client = listener.accept();
                    var server = new Socket(InetAddress.getLoopbackAddress(), upstream);
                    daemon(() -> copy(client, server, false));
                    daemon(() -> copy(server, client, true));
                } catch (IOException e) {
                    return;
                }
            }
        }

        private void copy(Socket from, Socket to, boolean loses) {
            try (from;
                    to) {
                var buffer = new byte[4096];
                for (int n = from.getInputStream().read(buffer); n >= 0; n = from.getInputStream().read(buffer)) {
                    if (loses && replies.incrementAndGet() % 10 == 0) {
                        return;
                    }
                    to.getOutputStream().write(buffer, 0, n);
                }
            } catch (IOException e) {
                // The other direction has ended.
            }
        }

        @Override
        public void close() throws IOException {
            listener.close();
        }
    }
}
