package com.cellserver.client;

import java.lang.System.Logger.Level;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.LongSupplier;

/** What the limiters of one server share: the connection, the breaker, the clocks, the log. It is the lock of all of them. */
final class Shared {
    private static final System.Logger LOG = System.getLogger("com.cellserver.client");
    private static final long QUIET_NANOS = 60_000_000_000L;

    final Link link;
    final Breaker breaker;
    final ClientMetrics metrics;
    final LongSupplier clock;
    final LongSupplier wall;
    private final Map<String, Long> logged = new HashMap<>();

    /** clock returns nanoseconds that do not go back, and wall those since 1970. */
    Shared(Link link, BreakerOptions breaker, ClientMetrics metrics, LongSupplier clock, LongSupplier wall) {
        this.link = link;
        this.breaker = new Breaker(breaker, () -> ThreadLocalRandom.current().nextDouble());
        this.metrics = new Guarded(metrics);
        this.clock = clock;
        this.wall = wall;
    }

    /** Metrics whose exceptions go no further, so that they change no decision and no state of the breaker. */
    private record Guarded(ClientMetrics metrics) implements ClientMetrics {
        private static void guard(Runnable report) {
            try {
                report.run();
            } catch (RuntimeException e) {
                LOG.log(Level.DEBUG, "metrics have thrown an exception", e);
            }
        }

        @Override
        public void decision(String policy, boolean allowed, Source source) {
            guard(() -> metrics.decision(policy, allowed, source));
        }

        @Override
        public void duration(long nanos) {
            guard(() -> metrics.duration(nanos));
        }

        @Override
        public void breaker(int change) {
            guard(() -> metrics.breaker(change));
        }

        @Override
        public void unavailable(String reason) {
            guard(() -> metrics.unavailable(reason));
        }
    }

    long now() {
        return clock.getAsLong();
    }

    /** Logs at most one line a minute of each kind. A message has no key of a client. */
    void say(String kind, Level level, String format, Object... values) {
        long now = now();
        synchronized (this) {
            Long last = logged.get(kind);
            if (last != null && now - last < QUIET_NANOS) {
                return;
            }
            logged.put(kind, now);
        }
        LOG.log(level, format, values);
    }
}
