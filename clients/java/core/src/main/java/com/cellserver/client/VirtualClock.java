package com.cellserver.client;

import java.time.Duration;
import java.time.Instant;

/** A clock for tests that stands still until it is advanced. One thread at a time moves it. */
public final class VirtualClock {
    private volatile long nanos;

    /** A clock that begins at an instant. */
    public VirtualClock(Instant start) {
        nanos = Math.addExact(Math.multiplyExact(start.getEpochSecond(), 1_000_000_000L), start.getNano());
    }

    /** Moves the clock. */
    public void advance(Duration by) {
        advanceNanos(by.toNanos());
    }

    void advanceNanos(long by) {
        nanos += by;
    }

    /** The instant in nanoseconds since 1970. */
    long nanos() {
        return nanos;
    }
}
