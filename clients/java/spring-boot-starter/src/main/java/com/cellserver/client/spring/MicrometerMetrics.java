package com.cellserver.client.spring;

import com.cellserver.client.ClientMetrics;
import com.cellserver.client.Source;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.DoubleStream;

/** The metrics of limiters for Micrometer: cellserver.client.decisions, .duration, .breaker.open and .unavailable. */
public final class MicrometerMetrics implements ClientMetrics {
    private final MeterRegistry registry;
    private final Timer duration;
    private final AtomicInteger open;
    private final ConcurrentMap<Decision, Counter> decisions = new ConcurrentHashMap<>();

    private record Decision(String policy, boolean allowed, Source source) {}

    /** Metrics in a registry. */
    public MicrometerMetrics(MeterRegistry registry) {
        this.registry = registry;
        this.open = registry.gauge("cellserver.client.breaker.open", new AtomicInteger());
        this.duration = Timer.builder("cellserver.client.duration")
                .description("Time of calls to the server.")
                .serviceLevelObjectives(DoubleStream.of(0.5, 1, 2.5, 5, 10, 25, 50, 100)
                        .mapToObj(millis -> Duration.ofNanos((long) (millis * 1e6)))
                        .toArray(Duration[]::new))
                .register(registry);
    }

    @Override
    public void decision(String policy, boolean allowed, Source source) {
        decisions.computeIfAbsent(new Decision(policy, allowed, source), this::counter).increment();
    }

    private Counter counter(Decision decision) {
        return registry.counter(
                "cellserver.client.decisions",
                "policy", decision.policy,
                "result", decision.allowed ? "allowed" : "denied",
                "source", decision.source.label());
    }

    @Override
    public void duration(long nanos) {
        duration.record(nanos, TimeUnit.NANOSECONDS);
    }

    @Override
    public void breaker(int change) {
        open.addAndGet(change);
    }

    @Override
    public void unavailable(String reason) {
        registry.counter("cellserver.client.unavailable", "reason", reason).increment();
    }
}
