package com.cellserver.client;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import io.netty.util.HashedWheelTimer;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * One connection of Lettuce, on which the commands of all threads go. It is made by the first command, and again by the next
 * command after it has ended. Lettuce itself connects not again, because it would then send commands once more that the
 * server may have decided.
 */
final class LettuceLink implements Link {
    /** The time for everything that makes a connection. Callers do not wait for it: their deadlines are their own. */
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(1);

    /** Commands that wait for their replies. Beyond them a command is lost at once. */
    private static final int MAX_PENDING = 50_000;

    private static final ConcurrentMap<String, Name> NAMES = new ConcurrentHashMap<>();

    private final RedisURI uri;
    private final ClientResources own; // null if the resources are the application's
    private final HashedWheelTimer timer;
    private final RedisClient client;
    private CompletableFuture<StatefulRedisConnection<String, String>> connection;
    private boolean closed;

    /** options and resources are those of an application, or null. */
    LettuceLink(RedisURI uri, ClientOptions options, ClientResources resources) {
        this.uri = RedisURI.builder(uri).withTimeout(CONNECT_TIMEOUT).build();
        ClientResources used = resources;
        if (used == null) {
            // Lettuce ends no timer that it has not made.
            timer = new HashedWheelTimer(new DefaultThreadFactory("cellserver-timer", true));
            used = DefaultClientResources.builder().ioThreadPoolSize(2).computationThreadPoolSize(2).timer(timer).build();
            own = used;
        } else {
            timer = null;
            own = null;
        }
        client = RedisClient.create(used, this.uri);
        client.setOptions(options(options));
    }

    private static ClientOptions options(ClientOptions given) {
        var base = given != null ? given : own();
        return base.mutate()
                .autoReconnect(false)
                .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .requestQueueSize(MAX_PENDING)
                .socketOptions(base.getSocketOptions().mutate().connectTimeout(CONNECT_TIMEOUT).build())
                .build();
    }

    /** Options without a greeting, for which a user needs no permission. */
    private static ClientOptions own() {
        return ClientOptions.builder()
                .protocolVersion(ProtocolVersion.RESP2)
                .pingBeforeActivateConnection(false)
                .socketOptions(SocketOptions.builder().keepAlive(true).build())
                .build();
    }

    @Override
    public CompletableFuture<Outcome> send(List<String> words, long deadline, LongSupplier clock) {
        CompletableFuture<StatefulRedisConnection<String, String>> current;
        try {
            current = connected();
        } catch (RuntimeException e) {
            return CompletableFuture.completedFuture(refusal(e));
        }
        if (current.isDone() && !current.isCompletedExceptionally()) {
            return dispatch(current.join(), words);
        }
        var outcome = new CompletableFuture<Outcome>();
        current.whenComplete((made, error) -> {
            if (error != null) {
                outcome.complete(refusal(error));
            } else if (outcome.isDone() || clock.getAsLong() - deadline >= 0) {
                outcome.complete(TIMEOUT); // its caller has gone: it must not be charged
            } else {
                dispatch(made, words).thenAccept(outcome::complete);
            }
        });
        return outcome;
    }

    /** The connection, or the attempt to make one. */
    private synchronized CompletableFuture<StatefulRedisConnection<String, String>> connected() {
        if (connection != null && usable(connection)) {
            return connection;
        }
        if (closed) {
            return CompletableFuture.failedFuture(new IllegalStateException("the limiter is closed"));
        }
        leave(connection);
        var made = client.connectAsync(StringCodec.UTF8, uri).toCompletableFuture();
        connection = made;
        return made;
    }

    private static boolean usable(CompletableFuture<StatefulRedisConnection<String, String>> connection) {
        return !connection.isDone() || (!connection.isCompletedExceptionally() && connection.join().isOpen());
    }

    private static void leave(CompletableFuture<StatefulRedisConnection<String, String>> connection) {
        if (connection != null) {
            connection.thenAccept(StatefulRedisConnection::closeAsync);
        }
    }

    private static CompletableFuture<Outcome> dispatch(StatefulRedisConnection<String, String> connection, List<String> words) {
        var args = new CommandArgs<>(StringCodec.UTF8);
        for (int i = 1; i < words.size(); i++) {
            args.add(words.get(i).getBytes(StandardCharsets.UTF_8));
        }
        var name = NAMES.computeIfAbsent(words.get(0), Name::new);
        var command = new AsyncCommand<>(new Command<>(name, new NestedMultiOutput<>(StringCodec.UTF8), args));
        try {
            connection.dispatch(command);
        } catch (RuntimeException e) {
            return CompletableFuture.completedFuture(lost(e));
        }
        return command.toCompletableFuture().handle((reply, error) -> error == null ? new Answered(reply) : lost(error));
    }

    /** What has become of a command that was given to a connection. */
    private static Outcome lost(Throwable error) {
        return error instanceof RedisCommandExecutionException ? new Refused(error.getMessage()) : new Lost("broken", true);
    }

    /** What becomes of a command without a connection: the greeting may have had an error for an answer. */
    private static Outcome refusal(Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            if (cause instanceof RedisCommandExecutionException) {
                return new Refused(cause.getMessage());
            }
        }
        return new Lost("refused", false);
    }

    @Override
    public synchronized void renew() {
        // An attempt that is under way has its own end, and the next command may need it.
        if (connection != null && connection.isDone()) {
            leave(connection);
            connection = null;
        }
    }

    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            leave(connection);
        }
        client.shutdown(Duration.ZERO, CONNECT_TIMEOUT);
        if (own != null) {
            own.shutdown(0, CONNECT_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS).awaitUninterruptibly();
            timer.stop();
        }
    }

    /** The name of a command, which Lettuce does not know. */
    private static final class Name implements ProtocolKeyword {
        private final String name;
        private final byte[] bytes;

        Name(String name) {
            this.name = name;
            this.bytes = name.getBytes(StandardCharsets.US_ASCII);
        }

        @Override
        public byte[] getBytes() {
            return bytes;
        }

        // Abstract in Lettuce 6, and deprecated in 7.
        @Override
        @Deprecated
        public String name() {
            return name;
        }

        @Override
        public String toString() {
            return name;
        }
    }
}
