package com.cellserver.client;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** Units that were taken before the cost of a request is known. One that is closed without commit gives all of them back. */
public final class Reservation implements AutoCloseable {
    private static final long MAX_RENEWALS_MILLIS = 3_600_000;

    private final Result result;
    private final Consumer<List<String>> send;
    private final Target target;
    private final String key;
    private final String id;
    private final AtomicBoolean ended;

    /** A reservation that holds nothing. */
    Reservation(Result result) {
        this.result = result;
        this.send = words -> {};
        this.target = null;
        this.key = "";
        this.id = "";
        this.ended = new AtomicBoolean(true);
    }

    Reservation(Result result, Consumer<List<String>> send, Target target, String key, String id, Duration ttl) {
        this.result = result;
        this.send = send;
        this.target = target;
        this.key = key;
        this.id = id;
        this.ended = new AtomicBoolean();
        renew(ttl.toMillis(), MAX_RENEWALS_MILLIS);
    }

    /** Renews the time to live at its half, for an hour at most, so that one that is forgotten ends. */
    private void renew(long ttlMillis, long leftMillis) {
        long half = Math.max(1, ttlMillis / 2);
        CompletableFuture.delayedExecutor(half, TimeUnit.MILLISECONDS).execute(() -> {
            if (!ended.get() && leftMillis > 0) {
                send.accept(target.renewWords(key, id, ttlMillis));
                renew(ttlMillis, leftMillis - half);
            }
        });
    }

    /** The decision. Without an allowed one, the request must not go ahead. */
    public Result result() {
        return result;
    }

    /** Ends the reservation with the units, 0 or more, that the request has cost. The others are given back, missing ones charged. */
    public void commit(long used) {
        if (ended.compareAndSet(false, true)) {
            send.accept(target.commitWords(key, id, Math.max(0, used)));
        }
    }

    /** Gives all units back, unless commit has been called. */
    @Override
    public void close() {
        if (ended.compareAndSet(false, true)) {
            send.accept(target.cancelWords(key, id));
        }
    }
}
