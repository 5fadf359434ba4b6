package com.cellserver.client;

import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * The decision on a call.
 *
 * @param allowed whether the call may go ahead
 * @param whole the numbers of the call as a whole; all 0 if no limiter has decided
 * @param source what has decided
 * @param policy the name of the policy or of the inline limits; empty for a request that is not limited
 * @param policies the decision on each clause; empty if no limiter has decided
 * @param never whether the cost is above the limit, so that waiting does not help
 * @param blocked whether a block without an end denies the key
 */
public record Result(
        boolean allowed,
        ClauseResult whole,
        Source source,
        String policy,
        List<ClauseResult> policies,
        boolean never,
        boolean blocked) {

    /** The result for a request without a key. */
    static final Result NOT_LIMITED = without(true, Source.NONE, "", -1);

    /** A decision without a limiter. */
    static Result without(boolean allowed, Source source, String policy, long retryMillis) {
        var whole = new ClauseResult(!allowed, 0, 0, retryMillis, Math.max(retryMillis, 0), 0, false, false);
        return new Result(allowed, whole, source, policy, List.of(), false, false);
    }

    /** The decision that a reply makes. */
    static Result of(String policy, Reply reply, long cost, Source source) {
        return new Result(
                reply.refused() == 0, reply.whole(), source, policy, reply.clauses(), reply.never(cost), reply.blocked(cost));
    }

    /** Units that a key has at most. 0 if no limiter has decided. */
    public long limit() {
        return whole.limit();
    }

    /** Units that are left. */
    public long remaining() {
        return whole.remaining();
    }

    /** The time until the same call would pass. Empty if it has passed, or never does. */
    public Optional<Duration> retryAfter() {
        return duration(whole.retryMillis());
    }

    /** The time until no unit is in use. Empty if that is never. */
    public Optional<Duration> resetAfter() {
        return duration(whole.resetMillis());
    }

    private static Optional<Duration> duration(long millis) {
        return millis < 0 ? Optional.empty() : Optional.of(Duration.ofMillis(millis));
    }

    /** A denial from memory, some nanoseconds later. */
    Result repeated(long nanos) {
        long millis = nanos / Clause.NANOS_PER_MILLI;
        var later = policies.stream().map(clause -> clause.later(millis)).toList();
        return new Result(false, whole.later(millis), Source.CACHE, policy, later, never, blocked);
    }
}
