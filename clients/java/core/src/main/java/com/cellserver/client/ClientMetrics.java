package com.cellserver.client;

/** What limiters report. No measurement has a key of a client. Methods return at once, and throw nothing. */
public interface ClientMetrics {
    /** Metrics that go nowhere. */
    ClientMetrics NONE = new ClientMetrics() {};

    /** Counts a decision. */
    default void decision(String policy, boolean allowed, Source source) {}

    /** Adds the time in nanoseconds that a call to the server has taken. */
    default void duration(long nanos) {}

    /** Counts breakers that are open: 1 for one that opens, -1 for one that closes. */
    default void breaker(int change) {}

    /** Counts a call without an answer. reason is timeout, refused, broken, interrupted, or the code of an error in lower case. */
    default void unavailable(String reason) {}
}
