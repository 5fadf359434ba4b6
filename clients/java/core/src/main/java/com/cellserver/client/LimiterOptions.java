package com.cellserver.client;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisURI;
import io.lettuce.core.resource.ClientResources;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.IntSupplier;
import java.util.function.ToLongFunction;
import java.util.regex.Pattern;

/**
 * The options of a limiter. Needed are url, policy or limits, key, and onUnavailable.
 *
 * @param <R> the type of requests
 */
public final class LimiterOptions<R> {
    /** The bounds of the option deadline. */
    public static final Duration MIN_DEADLINE = Duration.ofMillis(20);

    /** The bounds of the option deadline. */
    public static final Duration MAX_DEADLINE = Duration.ofSeconds(1);

    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_.-]{1,64}");

    RedisURI uri;
    ClientOptions clientOptions;
    ClientResources resources;
    String policy = "";
    List<Clause> limits = List.of();
    Key<? super R> key;
    ToLongFunction<? super R> cost;
    Duration deadline = Duration.ofMillis(50);
    OnUnavailable onUnavailable;
    IntSupplier instances;
    List<Clause> fallback = List.of();
    Duration denialCache = Duration.ofSeconds(1);
    BreakerOptions breaker = BreakerOptions.DEFAULT;
    Key<? super R> id;
    boolean randomId;
    Key<? super R> member;
    String className = "";
    String keep = "";
    HeaderStyle headers = HeaderStyle.DRAFT;
    ClientMetrics metrics = ClientMetrics.NONE;
    Executor executor = new CompletableFuture<Void>().defaultExecutor();
    private boolean inherited;

    LimiterOptions() {}

    /** The options of a limiter that another one makes. */
    LimiterOptions(LimiterOptions<R> from) {
        policy = from.policy;
        limits = from.limits;
        key = from.key;
        cost = from.cost;
        deadline = from.deadline;
        onUnavailable = from.onUnavailable;
        instances = from.instances;
        fallback = from.fallback;
        denialCache = from.denialCache;
        id = from.id;
        randomId = from.randomId;
        member = from.member;
        className = from.className;
        keep = from.keep;
        headers = from.headers;
        executor = from.executor;
        inherited = true;
    }

    /** The server, as redis://user:password@host:6379, rediss://host or redis-socket:///path. */
    public LimiterOptions<R> url(String url) {
        try {
            return uri(RedisURI.create(url));
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException("url is not one of a server: " + e.getMessage());
        }
    }

    /** The server, as Lettuce has it. */
    public LimiterOptions<R> uri(RedisURI uri) {
        this.uri = uri;
        return this;
    }

    /**
     * Options of Lettuce for the connection, such as those of TLS. The limiter itself sees to reconnecting and to what happens
     * without a connection. By default the protocol is RESP2.
     */
    public LimiterOptions<R> clientOptions(ClientOptions options) {
        this.clientOptions = options;
        return this;
    }

    /** The application's resources of Lettuce, which close leaves alone. By default the limiter has some of its own. */
    public LimiterOptions<R> resources(ClientResources resources) {
        this.resources = resources;
        return this;
    }

    /** The name of a policy of the server. With limits it is a name for them, "limit" by default: A-Z a-z 0-9 _ . - */
    public LimiterOptions<R> policy(String policy) {
        replace();
        this.policy = policy;
        return this;
    }

    /** Clauses such as "TB 200 100 1", in place of a policy of the server. All of them are charged, or none. */
    public LimiterOptions<R> limits(String... limits) {
        replace();
        this.limits = Clause.parse(List.of(limits));
        return this;
    }

    /** A limiter made of another one has not both, its own policy or limits and those of the other one. */
    private void replace() {
        if (inherited) {
            inherited = false;
            policy = "";
            limits = List.of();
            fallback = List.of();
        }
    }

    /** The key of a request. A request whose key is null is not limited. */
    public LimiterOptions<R> key(Key<? super R> key) {
        this.key = key;
        return this;
    }

    /** The cost of a request, 0 or more: 1 by default. */
    public LimiterOptions<R> cost(ToLongFunction<? super R> cost) {
        this.cost = cost;
        return this;
    }

    /** The time for everything that a check waits for, 20 ms to 1 s: 50 ms by default. */
    public LimiterOptions<R> deadline(Duration deadline) {
        this.deadline = deadline;
        return this;
    }

    /** What decides calls that the server does not decide in time. It has no default. */
    public LimiterOptions<R> onUnavailable(OnUnavailable onUnavailable) {
        this.onUnavailable = onUnavailable;
        return this;
    }

    /** How many instances of the application share the limits while each decides by itself, 1 or more. Needed by LOCAL. */
    public LimiterOptions<R> instances(int instances) {
        if (instances < 1) {
            throw new ConfigurationException("instances is 1 or more, not " + instances);
        }
        return instances(() -> instances);
    }

    /** The same as a function, which is called when an outage begins. */
    public LimiterOptions<R> instances(IntSupplier instances) {
        this.instances = instances;
        return this;
    }

    /** Clauses for LOCAL. By default they are limits, or are asked of the server at the start and each minute. */
    public LimiterOptions<R> fallback(String... limits) {
        this.fallback = Clause.parse(List.of(limits));
        return this;
    }

    /** For how long a denial is repeated from memory at most: 1 s by default. 0 is off, as policies with BAN need it. */
    public LimiterOptions<R> denialCache(Duration denialCache) {
        this.denialCache = denialCache;
        return this;
    }

    /** When calls stop for a pause. A limiter made by using has the breaker of the other one. */
    public LimiterOptions<R> breaker(BreakerOptions breaker) {
        this.breaker = breaker;
        return this;
    }

    /** An ID for each call: calls with the same one count once. A call whose connection breaks is sent once more. */
    public LimiterOptions<R> id(Key<? super R> id) {
        this.id = id;
        return this;
    }

    /** Whether calls have random IDs, so that one whose connection breaks is sent once more and counts once. */
    public LimiterOptions<R> retry(boolean retry) {
        this.randomId = retry;
        return this;
    }

    /** The member of a limit of places (CC). */
    public LimiterOptions<R> member(Key<? super R> member) {
        this.member = member;
        return this;
    }

    /** The option CLASS of RL.USE. */
    public LimiterOptions<R> className(String className) {
        this.className = className;
        return this;
    }

    /** The option KEEP of RL.USE. */
    public LimiterOptions<R> keep(String keep) {
        this.keep = keep;
        return this;
    }

    /** Which header fields answers have: DRAFT by default. */
    public LimiterOptions<R> headers(HeaderStyle headers) {
        this.headers = headers;
        return this;
    }

    /** What is told about calls. A limiter made by using has the metrics of the other one. */
    public LimiterOptions<R> metrics(ClientMetrics metrics) {
        this.metrics = metrics;
        return this;
    }

    /**
     * What checkAsync completes its futures on, since what follows may block: the common pool by default. Runnable::run is
     * the event loop of Lettuce, which nothing may block.
     */
    public LimiterOptions<R> executor(Executor executor) {
        this.executor = executor;
        return this;
    }

    /**
     * Makes the limiter. It connects with its first call, or with start.
     *
     * @throws ConfigurationException for an option that is missing or wrong
     */
    public Limiter<R> build() {
        if (uri == null) {
            throw new ConfigurationException("a limiter needs url");
        }
        validate();
        var link = new LettuceLink(uri, clientOptions, resources);
        return new Limiter<>(this, new Shared(link, breaker, metrics, System::nanoTime, LimiterOptions::wall));
    }

    private static long wall() {
        return System.currentTimeMillis() * Clause.NANOS_PER_MILLI;
    }

    Target target() {
        return new Target(policy.isEmpty() ? "limit" : policy, limits, className, keep);
    }

    /** Checks what does not depend on the server. */
    void validate() {
        require(key != null, "a limiter needs key");
        require(!policy.isEmpty() || !limits.isEmpty(), "a limiter needs policy or limits");
        require(policy.isEmpty() || NAME.matcher(policy).matches(), "policy is 1 to 64 of A-Z, a-z, 0-9, '_', '.' and '-'");
        require(limits.size() <= 16, "limits has at most 16 clauses");
        require(onUnavailable != null, "onUnavailable has no default: it is ALLOW, DENY or LOCAL");
        require(
                deadline.compareTo(MIN_DEADLINE) >= 0 && deadline.compareTo(MAX_DEADLINE) <= 0,
                "deadline is 20 ms to 1 s");
        require(
                onUnavailable != OnUnavailable.LOCAL || instances != null,
                "LOCAL needs instances, the number of processes that share the limit");
        require(!denialCache.isNegative(), "denialCache is 0 or more");
        require(limits.stream().noneMatch(Clause::concurrent) || member != null, "a limit of CC needs member");
        // What inline limits cannot do is an error here, and not at the first call.
        target().words(Target.START_KEY, 1, Target.CallOptions.NONE);
    }

    private static void require(boolean right, String message) {
        if (!right) {
            throw new ConfigurationException(message);
        }
    }
}
