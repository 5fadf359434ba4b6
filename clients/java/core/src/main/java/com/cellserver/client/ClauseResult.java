package com.cellserver.client;

/**
 * The decision on one clause of the limits.
 *
 * @param denies whether the clause is in the way of the call
 * @param limit units that a key has at most
 * @param remaining units that are left
 * @param retryMillis milliseconds until the same call would pass, rounded up; -1 for never, or nothing to wait for
 * @param resetMillis milliseconds until no unit is in use, rounded up; -1 for never
 * @param windowMillis length of the window in milliseconds; 0 if the clause has none, or it is not known
 * @param concurrent whether the units are places for requests that run
 * @param unlimited whether there is no limit
 */
public record ClauseResult(
        boolean denies,
        long limit,
        long remaining,
        long retryMillis,
        long resetMillis,
        long windowMillis,
        boolean concurrent,
        boolean unlimited) {

    /** The limit that a server answers for a key without a limit. */
    static final long UNLIMITED = 4294967295L;

    ClauseResult withWindow(long windowMillis, boolean concurrent) {
        return new ClauseResult(denies, limit, remaining, retryMillis, resetMillis, windowMillis, concurrent, unlimited);
    }

    ClauseResult withTimes(long retryMillis, long resetMillis) {
        return new ClauseResult(denies, limit, remaining, retryMillis, resetMillis, windowMillis, concurrent, unlimited);
    }

    /** The same some milliseconds later. */
    ClauseResult later(long millis) {
        return withTimes(left(retryMillis, millis), left(resetMillis, millis));
    }

    private static long left(long millis, long passed) {
        return millis < 0 ? -1 : Math.max(0, millis - passed);
    }
}
