package com.cellserver.client;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongSupplier;

/** A connection whose outcomes a test gives in their order, and whose clock stands still. Without an outcome, a call waits. */
final class ScriptedLink implements Link {
    static final Outcome ALLOWED = new Answered(List.of(0L, 2L, 1L, -1L, 60000L));
    static final Outcome DENIED = new Answered(List.of(1L, 2L, 0L, 58000L, 118000L));

    final List<List<String>> sent = new ArrayList<>();
    final List<CompletableFuture<Outcome>> waiting = new ArrayList<>();
    Shared shared;
    long now;
    int renewals;
    boolean closed;
    private final ArrayDeque<Outcome> outcomes = new ArrayDeque<>();

    <R> Limiter<R> limiter(LimiterOptions<R> options) {
        options.validate();
        shared = new Shared(this, options.breaker, options.metrics, () -> now, () -> 0);
        return new Limiter<>(options, shared);
    }

    void reply(Outcome... next) {
        outcomes.addAll(List.of(next));
    }

    @Override
    public CompletableFuture<Outcome> send(List<String> words, long deadline, LongSupplier clock) {
        sent.add(words);
        if (!outcomes.isEmpty()) {
            return CompletableFuture.completedFuture(outcomes.remove());
        }
        var future = new CompletableFuture<Outcome>();
        waiting.add(future);
        return future;
    }

    @Override
    public void renew() {
        renewals++;
    }

    @Override
    public void close() {
        closed = true;
    }
}
