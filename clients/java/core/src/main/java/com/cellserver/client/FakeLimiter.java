package com.cellserver.client;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * A double of a limiter in virtual time, without a server. It goes wherever a Limiter does.
 *
 * @param <R> the type of requests
 */
public final class FakeLimiter<R> extends Limiter<R> {
    private final VirtualClock clock;
    private final FakeServer server;

    /**
     * A call that has reached the server.
     *
     * @param policy the policy, or the name of inline limits
     * @param key the key
     * @param cost the cost
     */
    public record Asked(String policy, String key, long cost) {}

    /** A double with the options of a limiter, of which url is not needed, and with texts of limits by the names of policies. */
    public FakeLimiter(LimiterOptions<R> options, Map<String, List<String>> policies) {
        this(options, policies, new VirtualClock(Instant.EPOCH));
    }

    /** The same with a clock of the test. */
    public FakeLimiter(LimiterOptions<R> options, Map<String, List<String>> policies, VirtualClock clock) {
        this(options, clock, new FakeServer(clock, policies));
    }

    private FakeLimiter(LimiterOptions<R> options, VirtualClock clock, FakeServer server) {
        super(valid(options), shared(options, clock, server));
        this.clock = clock;
        this.server = server;
    }

    private static <R> LimiterOptions<R> valid(LimiterOptions<R> options) {
        options.validate();
        return options;
    }

    private static Shared shared(LimiterOptions<?> options, VirtualClock clock, FakeServer server) {
        var given = options.breaker;
        // Without jitter a test says exactly when the breaker closes.
        var breaker = new BreakerOptions(given.inRow(), given.window(), given.pause(), 0);
        return new Shared(server, breaker, options.metrics, clock::nanos, clock::nanos);
    }

    /** Moves the clock. */
    public void advance(Duration by) {
        clock.advance(by);
    }

    /** Lets the server answer nothing from now on. The deadlines of its calls pass at once. */
    public void goAway() {
        server.lose("timeout");
    }

    /** Lets the server refuse connections from now on. */
    public void refuse() {
        server.lose("refused");
    }

    /** Lets the server answer again. */
    public void comeBack() {
        server.lose("");
    }

    /** The calls that the server has decided, in their order. */
    public List<Asked> calls() {
        return server.calls();
    }
}
