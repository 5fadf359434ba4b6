package com.cellserver.client;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * The limiter in the process: the same clauses as the server's, decided with whole nanoseconds. It is a table of keys, each
 * with the states of its clauses. It has no lock.
 */
final class LocalLimiter {
    /** Keys that a table holds. The keys beyond them share one state. */
    static final int MAX_KEYS = 100_000;

    private static final String SHARED = "\0shared";
    private static final long SWEEP_NANOS = 1_000_000_000L;

    /** The state of a clause between calls. Null is unused. */
    private sealed interface State {}

    private record Bucket(long fullAt) implements State {}

    private record Window(long start, long current, long previous) implements State {}

    private record Places(Map<String, Long> ends) implements State {}

    private record Decided(ClauseResult answer, State state) {}

    private record Entry(long end, State[] states) {}

    private final List<Clause> clauses;
    private final LongSupplier clock;
    private final int maxKeys;
    private final HashMap<String, Entry> entries = new HashMap<>();
    private long swept = Long.MIN_VALUE;

    /** clock returns nanoseconds since the epoch, so that windows begin where the server's do. */
    LocalLimiter(List<Clause> clauses, LongSupplier clock, int instances, int maxKeys) {
        this.clauses = clauses.stream().map(clause -> clause.share(instances).local()).toList();
        this.clock = clock;
        this.maxKeys = maxKeys;
    }

    LocalLimiter(List<Clause> clauses, LongSupplier clock, int instances) {
        this(clauses, clock, instances, MAX_KEYS);
    }

    int size() {
        return entries.size();
    }

    /** Decides a call and charges all clauses or none. Returns the answer of each clause. */
    List<ClauseResult> check(String key, long cost, String member) {
        long now = clock.getAsLong();
        if (entries.size() >= maxKeys && !entries.containsKey(key)) {
            sweep(now);
            if (entries.size() >= maxKeys) {
                key = SHARED;
            }
        }
        Entry entry = entries.get(key);
        var before = entry == null ? new State[clauses.size()] : entry.states;
        var after = new State[before.length];
        var answers = new ArrayList<ClauseResult>(before.length);
        boolean denied = false;
        boolean used = false;
        long reset = 0;
        for (int i = 0; i < before.length; i++) {
            var decided = decide(clauses.get(i), before[i], now, cost, member);
            answers.add(decided.answer);
            after[i] = decided.state;
            denied |= decided.answer.denies();
            used |= decided.state != null;
            reset = Math.max(reset, decided.answer.resetMillis());
        }
        if (denied) {
            return cost == 0 || before.length == 1 ? answers : unchanged(answers, before, now, member);
        }
        if (used) {
            entries.put(key, new Entry(Arithmetic.add(now, Arithmetic.multiply(reset, Clause.NANOS_PER_MILLI)), after));
        } else {
            entries.remove(key);
        }
        return answers;
    }

    /** The answers of a denied call, which are those of calls that change nothing. */
    private List<ClauseResult> unchanged(List<ClauseResult> answers, State[] states, long now, String member) {
        var out = new ArrayList<ClauseResult>(answers.size());
        for (int i = 0; i < states.length; i++) {
            var answer = answers.get(i);
            var seen = decide(clauses.get(i), states[i], now, 0, member).answer;
            out.add(new ClauseResult(
                    answer.denies(), answer.limit(), seen.remaining(), answer.retryMillis(), seen.resetMillis(),
                    answer.windowMillis(), answer.concurrent(), answer.unlimited()));
        }
        return out;
    }

    /** Removes the keys that are unused again, at most once a second. */
    private void sweep(long now) {
        if (swept != Long.MIN_VALUE && now - swept < SWEEP_NANOS) {
            return;
        }
        swept = now;
        entries.values().removeIf(entry -> entry.end <= now);
    }

    /** The answer of a call as a whole, from those of its clauses. */
    static ClauseResult binding(List<ClauseResult> answers) {
        if (answers.size() == 1) {
            return answers.get(0);
        }
        boolean denied = answers.stream().anyMatch(ClauseResult::denies);
        ClauseResult least = null;
        long retry = -1;
        long reset = -1;
        boolean never = false;
        for (ClauseResult answer : answers) {
            reset = Math.max(reset, answer.resetMillis());
            if (denied && !answer.denies()) {
                continue;
            }
            if (least == null || answer.remaining() < least.remaining()) {
                least = answer;
            }
            retry = Math.max(retry, answer.retryMillis());
            never |= answer.retryMillis() < 0;
        }
        return least.withTimes(denied && !never ? retry : -1, reset);
    }

    private static Decided decide(Clause clause, State state, long now, long cost, String member) {
        long units = clause.units(cost);
        return switch (clause.kind()) {
            case "CC" -> places(clause, state instanceof Places p ? p : null, now, units, member);
            case "SW" -> {
                var window = state instanceof Window w ? w : null;
                yield clause.fixed() ? fixed(clause, window, now, units) : counter(clause, window, now, units);
            }
            case "NONE" -> new Decided(
                    new ClauseResult(false, clause.mostUnits(), clause.mostUnits(), -1, 0, 0, false, true), null);
            default -> bucket(clause, state instanceof Bucket b ? b : null, now, units);
        };
    }

    /** Decides a token bucket, or CL.THROTTLE, which is one. */
    private static Decided bucket(Clause clause, Bucket state, long now, long cost) {
        // The nanoseconds in which one unit comes back, as the server has them.
        long unit = Math.max(1, (long) ((double) clause.period() / (double) clause.count()));
        long limit = clause.limit();
        long full = state == null ? now : Math.max(state.fullAt, now);
        boolean denied = cost >= 0 && Arithmetic.add(Arithmetic.ceil(full - now, unit), cost) > limit;
        long retry = denied && cost <= limit ? full - now - (limit - cost) * unit : -1;
        if (!denied && cost != 0) {
            full = Math.max(now, Arithmetic.add(full, Arithmetic.multiply(cost, unit)));
        }
        long remaining = Math.min(Math.max(limit - Arithmetic.ceil(full - now, unit), 0), Math.max(limit, 0));
        return new Decided(answer(clause, denied, remaining, retry, full - now), full > now ? new Bucket(full) : null);
    }

    private static Decided fixed(Clause clause, Window window, long now, long cost) {
        long start = now - Math.floorMod(now, clause.period());
        long count = window != null && window.start == start ? window.current : 0;
        boolean denied = cost >= 0 && Arithmetic.add(count, cost) > clause.limit();
        long left = start + clause.period() - now;
        if (!denied) {
            count = Math.max(0, count + cost);
        }
        long retry = denied && cost <= clause.limit() ? left : -1;
        var answer = answer(clause, denied, Math.max(0, clause.limit() - count), retry, count > 0 ? left : 0);
        return new Decided(answer, count > 0 ? new Window(start, count, 0) : null);
    }

    private static Decided counter(Clause clause, Window window, long now, long cost) {
        long length = clause.period();
        long limit = clause.limit();
        long start = now - Math.floorMod(now, length);
        long current = window != null && window.start == start ? window.current : 0;
        long previous = 0;
        if (window != null) {
            previous = window.start == start ? window.previous : window.start == start - length ? window.current : 0;
        }
        long left = start + length - now;
        long estimate = Arithmetic.add(Arithmetic.share(previous, left, length), current);
        boolean denied = cost >= 0 && Arithmetic.add(estimate, cost) > limit;
        long retry = -1;
        if (denied && cost <= limit) {
            retry = Arithmetic.add(current, cost) <= limit
                    ? decay(previous, limit - current - cost, length) - (length - left)
                    : left + decay(current, limit - cost, length);
        }
        if (!denied && cost != 0) {
            long refund = current + cost;
            current = Math.max(0, refund);
            previous = Math.max(0, previous + Math.min(0, refund));
        }
        estimate = Arithmetic.add(Arithmetic.share(previous, left, length), current);
        long reset = current > 0 ? left + decay(current, 0, length) : Math.max(0, decay(previous, 0, length) - (length - left));
        var answer = answer(clause, denied, Math.max(0, limit - estimate), retry, reset);
        return new Decided(answer, reset > 0 ? new Window(start, current, previous) : null);
    }

    /** The part of a window after which no more than room of the units of the window before it still count. */
    private static long decay(long units, long room, long length) {
        return units <= room ? 0 : length - (Arithmetic.shareUp(room + 1, length, units) - 1);
    }

    private static Decided places(Clause clause, Places state, long now, long cost, String member) {
        var ends = new HashMap<String, Long>();
        if (state != null) {
            state.ends.forEach((name, end) -> {
                if (end > now) {
                    ends.put(name, end);
                }
            });
        }
        boolean denied = cost > 0 && !ends.containsKey(member) && ends.size() + 1 > clause.limit();
        long retry = -1;
        if (denied && !ends.isEmpty()) {
            retry = ends.values().stream().mapToLong(Long::longValue).min().getAsLong() - now;
        }
        if (cost > 0 && !denied) {
            ends.put(member, now + clause.period());
        } else if (cost < 0) {
            ends.remove(member);
        }
        long reset = ends.values().stream().mapToLong(end -> end - now).max().orElse(0);
        var answer = answer(clause, denied, Math.max(0, clause.limit() - ends.size()), retry, reset);
        return new Decided(answer, ends.isEmpty() ? null : new Places(ends));
    }

    private static ClauseResult answer(Clause clause, boolean denied, long remaining, long retry, long reset) {
        return new ClauseResult(
                denied, clause.limit(), remaining, millis(retry), millis(reset), clause.windowMillis(), clause.concurrent(), false);
    }

    private static long millis(long nanos) {
        return nanos > 0 ? Arithmetic.ceil(nanos, Clause.NANOS_PER_MILLI) : nanos;
    }
}
