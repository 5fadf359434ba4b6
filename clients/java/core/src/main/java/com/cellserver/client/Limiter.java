package com.cellserver.client;

import com.cellserver.client.Breaker.Outcome;
import com.cellserver.client.Breaker.Ticket;
import com.cellserver.client.Link.Answered;
import com.cellserver.client.Link.Lost;
import com.cellserver.client.Link.Refused;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import reactor.core.scheduler.Schedulers;

/**
 * Asks a server whether requests may go ahead. Threads share a limiter.
 *
 * @param <R> the type of requests
 */
public class Limiter<R> implements AutoCloseable {
    // The time without an outage after which the limiter in the process is dropped. If it were dropped at the first answer,
    // each lost reply among others would begin with unused limits.
    private static final long FORGET_NANOS = 60_000_000_000L;

    private static final Lost INTERRUPTED = new Lost("interrupted", false);

    // The time after which the limits of a policy are read again for the limiter in the process.
    private static final long REFRESH_NANOS = 60_000_000_000L;

    // The time that start waits for an answer. The first connection of a program takes longer than others.
    private static final long START_NANOS = 5_000_000_000L;

    private final LimiterOptions<R> options;
    private final Shared shared;
    private final Target target;
    private final boolean readsPolicy;

    // What follows is guarded by shared.
    private final DenialCache<Scope> cache;
    private List<Clause> numbers;
    private long readAt;
    private LocalLimiter local;
    private int instances = 1; // as the application has said last
    private long localAt;
    private boolean answered;
    private boolean withId;

    /** What is the same in calls that a denial in memory answers. */
    private record Scope(String key, String member) {}

    /** A call to the server that is under way. */
    private static final class Call {
        final Scope scope;
        final long cost;
        final long started;
        final long deadline;
        final long ttlMillis;
        Ticket ticket;
        String id;
        List<String> words;
        boolean tried;

        Call(Scope scope, long cost, long started, long deadline, long ttlMillis) {
            this.scope = scope;
            this.cost = cost;
            this.started = started;
            this.deadline = deadline;
            this.ttlMillis = ttlMillis;
        }
    }

    /** Either a decision, or a call that is to be sent. */
    private record Step(Result result, Call call) {}

    Limiter(LimiterOptions<R> options, Shared shared) {
        this.options = options;
        this.shared = shared;
        this.target = options.target();
        this.cache = new DenialCache<>(options.denialCache.toNanos());
        this.numbers = options.fallback.isEmpty() ? target.clauses() : options.fallback;
        this.readsPolicy = options.onUnavailable == OnUnavailable.LOCAL && numbers.isEmpty();
        this.readAt = shared.now() - REFRESH_NANOS;
        this.withId = options.id != null || options.randomId;
        sayApproximations();
    }

    /** The options of a new limiter. */
    public static <R> LimiterOptions<R> builder() {
        return new LimiterOptions<>();
    }

    /**
     * A limiter with other options on the same connection and the same breaker. A new policy or new limits replace both. It
     * remembers denials of its own: keep it rather than make one for each request. Its close does nothing to this one.
     */
    public Limiter<R> using(Consumer<LimiterOptions<R>> change) {
        var changed = new LimiterOptions<>(options);
        change.accept(changed);
        changed.validate();
        return new Limiter<>(changed, shared) {
            @Override
            public void close() {
                // The connection is that of the limiter from which this one comes.
            }
        };
    }

    /** The style of header fields in the options. */
    public HeaderStyle headers() {
        return options.headers;
    }

    /**
     * Decides a request, and charges it if it is allowed. The answer comes within the deadline.
     *
     * @throws ConfigurationException if the server has not answered yet, and refuses the policy, the password or the command
     * @throws ServerException for an answer that is a fault of the program
     * @throws KeyException if the key cannot be made
     * @throws IllegalStateException on a thread that must not be blocked: it has checkAsync
     */
    public Result check(R request) {
        return blocking(begin(request));
    }

    /** Decides a call of a key, in place of the options key and cost. A negative cost gives units back. */
    public Result check(String key, long cost) {
        return blocking(begin(null, key, cost));
    }

    /** As check, without waiting. The future ends with the exceptions of check. */
    public CompletableFuture<Result> checkAsync(R request) {
        try {
            return async(begin(request));
        } catch (RuntimeException e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    /** As check of a key, without waiting. */
    public CompletableFuture<Result> checkAsync(String key, long cost) {
        try {
            return async(begin(null, key, cost));
        } catch (RuntimeException e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    /**
     * Takes units before the cost of a request is known. While it is open, its time to live, 1 s to 24 h, is renewed. The
     * result may be a denial; ending that does nothing.
     */
    public Reservation reserve(R request, long units, Duration ttl) {
        String key = options.key.of(request);
        return key == null ? new Reservation(Result.NOT_LIMITED) : reserve(request, key, units, ttl);
    }

    private Reservation reserve(R request, String key, long units, Duration ttl) {
        if (units < 1 || ttl.compareTo(Duration.ofSeconds(1)) < 0 || ttl.compareTo(Duration.ofHours(24)) > 0) {
            throw new ConfigurationException("a reservation has 1 unit or more, and a time to live of 1 s to 24 h");
        }
        var call = call(request, key, units, ttl.toMillis());
        call.id = UUID.randomUUID().toString();
        var result = blocking(permitted(call));
        boolean holds = result.allowed() && result.source() == Source.SERVER;
        return holds ? new Reservation(result, this::settle, target, call.scope.key, call.id, ttl) : new Reservation(result);
    }

    /** Sends a command of a reservation. */
    private void settle(List<String> words) {
        long deadline = shared.now() + options.deadline.toNanos();
        var outcome = await(words, deadline);
        if (!(outcome instanceof Answered)) {
            shared.say("settle", Level.WARNING, "a reservation has not been settled: {0}", words.get(0));
        }
    }

    /**
     * Connects, and checks the configuration within 5 s. An application calls it when it starts. A server that is unavailable
     * is a line in the log, but for LOCAL without limits.
     *
     * @throws ConfigurationException if a policy or a permission is missing, the password is wrong, or limits are
     */
    public void start() {
        String member = options.member == null ? "" : "start";
        var words = target.startWords(member);
        if (words == null) {
            // A call of no units makes no key, and shows that the server takes the limits.
            words = target.words(Target.START_KEY, 0, new Target.CallOptions("", member, "", 0));
        }
        var outcome = await(words, shared.now() + START_NANOS);
        if (outcome instanceof Refused refused && Verdict.of(refused.text(), false, false) == Verdict.RAISE) {
            throw new ConfigurationException(refused.text());
        }
        if (outcome instanceof Answered) {
            synchronized (shared) {
                answered = true;
            }
        } else {
            shared.say("start", Level.WARNING, "the server is unavailable at the start");
        }
        if (readsPolicy) {
            readPolicy(await(policyWords(), shared.now() + START_NANOS));
        }
    }

    /** Ends the connection, also for limiters made of this one. */
    @Override
    public void close() {
        shared.link.close();
    }

    // What follows decides without waiting: begin, then end with the outcome of a call, until there is a result.

    private Step begin(R request) {
        String key = options.key.of(request);
        if (key == null) {
            return new Step(Result.NOT_LIMITED, null);
        }
        long cost = options.cost == null ? 1 : options.cost.applyAsLong(request);
        if (cost < 0) {
            throw new ConfigurationException("cost returns 0 or more, not " + cost + ": a request gives no units back");
        }
        return begin(request, key, cost);
    }

    private Step begin(R request, String key, long cost) {
        var call = call(request, key, cost, 0);
        synchronized (shared) {
            if (cost < 0) {
                cache.forget(call.scope);
            }
            var found = cache.find(call.scope, cost, call.started);
            if (found != null) {
                return decided(found);
            }
        }
        // The function of the application comes before the ticket of the breaker, which has to be given back.
        call.id = withId() ? id(request) : "";
        return permitted(call);
    }

    private Call call(R request, String key, long cost, long ttlMillis) {
        String member = options.member == null ? "" : Keys.encodable(text("member", options.member.of(request)));
        long now = shared.now();
        return new Call(new Scope(Keys.bounded(key), member), cost, now, now + options.deadline.toNanos(), ttlMillis);
    }

    private boolean withId() {
        synchronized (shared) {
            return withId;
        }
    }

    private String id(R request) {
        return options.id == null ? UUID.randomUUID().toString() : Keys.encodable(text("id", options.id.of(request)));
    }

    private static String text(String what, String text) {
        if (text == null) {
            throw new KeyException(what + " is a text, not null");
        }
        return text;
    }

    /** Asks the breaker for a call. */
    private Step permitted(Call call) {
        call.words = words(call);
        synchronized (shared) {
            var ticket = shared.breaker.begin(call.started);
            if (ticket.allowed()) {
                call.ticket = ticket;
                return new Step(null, call);
            }
        }
        return away(call, "breaker");
    }

    private List<String> words(Call call) {
        return target.words(call.scope.key, call.cost, new Target.CallOptions("", call.scope.member, call.id, call.ttlMillis));
    }

    /** Decides a call by its outcome, or sends it again. */
    private Step end(Call call, Link.Outcome outcome) {
        long now = shared.now();
        if (outcome instanceof Lost lost) {
            if (lost.broken() && !call.id.isEmpty() && !call.tried && now - call.deadline < 0) {
                call.tried = true;
                return new Step(null, call);
            }
            return lost == INTERRUPTED ? interrupted(call) : failed(call, now, lost.reason());
        }
        shared.metrics.duration(now - call.started);
        if (outcome instanceof Refused refused) {
            return refused(call, now, refused.text());
        }
        Reply reply;
        try {
            reply = Reply.read(((Answered) outcome).reply(), known());
        } catch (Reply.Malformed e) {
            note(call, now, Outcome.ANSWERED);
            throw new ServerException("ERR", e.getMessage());
        }
        var result = Result.of(target.policy(), reply, call.cost, Source.SERVER);
        note(call, now, Outcome.ANSWERED);
        synchronized (shared) {
            answered = true;
            if (local != null && now - localAt > FORGET_NANOS) {
                local = null;
            }
            if (!result.allowed() && call.ttlMillis == 0) {
                cache.store(call.scope, call.cost, result, now);
            }
        }
        if (readsPolicy) {
            refreshPolicy(now);
        }
        return decided(result);
    }

    /** The clauses of the limits, if they are known. */
    private List<Clause> known() {
        if (!target.clauses().isEmpty()) {
            return target.clauses();
        }
        synchronized (shared) {
            return numbers;
        }
    }

    /** Decides a call that the server has answered with an error. */
    private Step refused(Call call, long now, String text) {
        String code = Verdict.code(text);
        boolean started;
        synchronized (shared) {
            started = answered;
        }
        var verdict = Verdict.of(text, started, !call.id.isEmpty() && call.ttlMillis == 0);
        if (verdict == Verdict.FAILED) {
            return failed(call, now, code.toLowerCase(Locale.ROOT));
        }
        if (verdict == Verdict.WITHOUT_ID) {
            synchronized (shared) {
                withId = false;
            }
            shared.say("id", Level.WARNING, "the server is too old for ID: calls are not tried again");
            call.id = "";
            call.words = words(call);
            return new Step(null, call);
        }
        note(call, now, Outcome.ANSWERED);
        if (verdict == Verdict.RAISE) {
            shared.say(code, Level.ERROR, "the server refuses a limiter: policy={0} code={1}", target.policy(), code);
            throw Verdict.exception(text);
        }
        if (verdict == Verdict.MISCONFIGURED) {
            shared.say(
                    code, Level.ERROR, "the server refuses a limiter, and onUnavailable decides: policy={0} code={1}",
                    target.policy(), code);
        }
        shared.metrics.unavailable(code.toLowerCase(Locale.ROOT));
        return away(call, code);
    }

    /** The caller has gone, which says nothing about the server. */
    private Step interrupted(Call call) {
        abandon(call);
        shared.metrics.unavailable(INTERRUPTED.reason());
        return away(call, INTERRUPTED.reason());
    }

    private Step failed(Call call, long now, String reason) {
        shared.metrics.unavailable(reason);
        note(call, now, Outcome.FAILED);
        return away(call, reason);
    }

    /** Tells the breaker how a call has ended. */
    private void note(Call call, long now, Outcome outcome) {
        var ticket = call.ticket;
        boolean opened;
        boolean closed;
        synchronized (shared) {
            var before = shared.breaker.state();
            opened = shared.breaker.end(ticket, now, outcome);
            closed = before == Breaker.State.HALF_OPEN && shared.breaker.state() == Breaker.State.CLOSED;
        }
        if (opened) {
            if (!ticket.probe()) {
                shared.metrics.breaker(1);
            }
            shared.link.renew();
        } else if (closed) {
            shared.metrics.breaker(-1);
            shared.say("back", Level.INFO, "the server answers again");
        }
    }

    /** Decides without the server. */
    private Step away(Call call, String reason) {
        shared.say(
                "away", Level.WARNING, "the server is unavailable ({0}), and onUnavailable={1} decides", reason,
                options.onUnavailable);
        if (options.onUnavailable == OnUnavailable.ALLOW) {
            return decided(Result.without(true, Source.UNAVAILABLE, target.policy(), -1));
        }
        readInstances();
        synchronized (shared) {
            if (options.onUnavailable == OnUnavailable.LOCAL && !numbers.isEmpty()) {
                if (local == null) {
                    local = new LocalLimiter(numbers, shared.wall, instances);
                }
                localAt = shared.now();
                var answers = local.check(call.scope.key, call.cost, call.scope.member);
                var whole = LocalLimiter.binding(answers);
                var reply = new Reply(whole.denies() ? 1 : 0, whole, answers);
                return decided(Result.of(target.policy(), reply, call.cost, Source.LOCAL));
            }
        }
        return decided(Result.without(false, Source.UNAVAILABLE, target.policy(), 1000));
    }

    /** Asks the application for the number of instances, outside the lock, before a limiter in the process is made. */
    private void readInstances() {
        synchronized (shared) {
            if (options.onUnavailable != OnUnavailable.LOCAL || local != null) {
                return;
            }
        }
        try {
            int read = options.instances.getAsInt();
            synchronized (shared) {
                instances = read;
            }
        } catch (RuntimeException e) {
            shared.say("instances", Level.ERROR, "the number of instances cannot be read, and the last one is used: {0}", e.toString());
        }
    }

    private Step decided(Result result) {
        shared.metrics.decision(result.policy(), result.allowed(), result.source());
        return new Step(result, null);
    }

    // What follows waits.

    private Result blocking(Step step) {
        while (step.call != null) {
            var call = step.call;
            if (Schedulers.isInNonBlockingThread()) {
                abandon(call);
                throw new IllegalStateException("check would block " + Thread.currentThread().getName() + ": use checkAsync");
            }
            step = end(call, await(call.words, call.deadline));
        }
        return step.result;
    }

    private void abandon(Call call) {
        synchronized (shared) {
            shared.breaker.end(call.ticket, shared.now(), Outcome.ABANDONED);
        }
    }

    private Link.Outcome await(List<String> words, long deadline) {
        var sent = shared.link.send(words, deadline, shared.clock);
        try {
            return sent.isDone() ? sent.join() : sent.get(Math.max(0, deadline - shared.now()), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
            sent.complete(Link.TIMEOUT);
            return Link.TIMEOUT;
        } catch (InterruptedException e) {
            sent.complete(Link.TIMEOUT);
            Thread.currentThread().interrupt();
            return INTERRUPTED;
        } catch (ExecutionException e) {
            throw new IllegalStateException(e); // the futures of a link have no exception
        }
    }

    private CompletableFuture<Result> async(Step step) {
        if (step.call == null) {
            return CompletableFuture.completedFuture(step.result);
        }
        var result = new CompletableFuture<Result>();
        send(step.call, result);
        return result;
    }

    private void send(Call call, CompletableFuture<Result> result) {
        var sent = shared.link.send(call.words, call.deadline, shared.clock);
        if (sent.isDone()) {
            finish(call, sent.join(), result);
            return;
        }
        sent.completeOnTimeout(Link.TIMEOUT, Math.max(0, call.deadline - shared.now()), TimeUnit.NANOSECONDS)
                .thenAccept(outcome -> finishLater(call, outcome, result));
    }

    /** Ends a call on the executor, or at once if the executor takes no more work. */
    private void finishLater(Call call, Link.Outcome outcome, CompletableFuture<Result> result) {
        try {
            options.executor.execute(() -> finish(call, outcome, result));
        } catch (RuntimeException e) {
            finish(call, outcome, result);
        }
    }

    private void finish(Call call, Link.Outcome outcome, CompletableFuture<Result> result) {
        try {
            var step = end(call, outcome);
            if (step.call == null) {
                result.complete(step.result);
            } else {
                send(step.call, result);
            }
        } catch (RuntimeException e) {
            result.completeExceptionally(e);
        }
    }

    // The limits of a policy for the limiter in the process.

    private List<String> policyWords() {
        return List.of("RL.POLICY", "GET", target.policy());
    }

    /** Reads the limits again once a minute. Those from before stay if they cannot be had. */
    private void refreshPolicy(long now) {
        synchronized (shared) {
            if (now - readAt < REFRESH_NANOS) {
                return;
            }
            readAt = now;
        }
        shared.link.send(policyWords(), now + START_NANOS, shared.clock).thenAccept(outcome -> {
            try {
                readPolicy(outcome);
            } catch (ConfigurationException e) {
                shared.say("policy", Level.WARNING, "the limits of a policy cannot be read: policy={0}", target.policy());
            }
        });
    }

    private void readPolicy(Link.Outcome outcome) {
        if (!(outcome instanceof Answered answer) || !(answer.reply() instanceof List<?> fields)) {
            String reason = outcome instanceof Refused refused ? refused.text() : "the server is unavailable";
            throw new ConfigurationException(
                    "LOCAL has no limits of '" + target.policy() + "': give fallback(\"TB ...\"): " + reason);
        }
        Object limits = List.of();
        boolean millis = false;
        for (int i = 0; i + 1 < fields.size(); i += 2) {
            if ("limits".equals(fields.get(i))) {
                limits = fields.get(i + 1);
            } else if ("ms".equals(fields.get(i))) {
                millis = "1".equals(String.valueOf(fields.get(i + 1)));
            }
        }
        var texts = limits instanceof List<?> list ? list : List.of(limits);
        var read = Clause.parse(texts.stream().map(String::valueOf).toList(), millis);
        synchronized (shared) {
            readAt = shared.now();
            if (!read.equals(numbers)) {
                numbers = read;
                local = null;
            }
        }
        sayApproximations();
    }

    private void sayApproximations() {
        if (options.onUnavailable != OnUnavailable.LOCAL) {
            return;
        }
        for (Clause clause : known()) {
            if (clause.approximated()) {
                shared.say(
                        "approximation", Level.WARNING, "LOCAL decides {0} as {1}", clause.toString(), clause.local().toString());
            }
        }
    }
}
