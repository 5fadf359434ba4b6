package com.cellserver.client;

import com.cellserver.client.FakeLimiter.Asked;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongSupplier;

/** A server in the process for tests. It knows the commands that a limiter sends for decisions, by their words. */
final class FakeServer implements Link {
    /** The words that end the options of a clause. */
    private static final Set<String> AFTER_OPTIONS = Set.of("TB", "SW", "CL", "CC", "NONE", "MEMBER", "ID", "MS");

    private final VirtualClock clock;
    private final Map<String, List<String>> policies;
    private final Map<List<?>, LocalLimiter> tables = new HashMap<>();
    private final List<Asked> calls = new ArrayList<>();
    private String away = "";
    private int renewals;

    FakeServer(VirtualClock clock, Map<String, List<String>> policies) {
        this.clock = clock;
        this.policies = Map.copyOf(policies);
    }

    synchronized void lose(String reason) {
        away = reason;
    }

    synchronized List<Asked> calls() {
        return List.copyOf(calls);
    }

    synchronized int renewals() {
        return renewals;
    }

    @Override
    public CompletableFuture<Outcome> send(List<String> words, long deadline, LongSupplier now) {
        return CompletableFuture.completedFuture(answer(words, deadline));
    }

    private synchronized Outcome answer(List<String> words, long deadline) {
        if (away.equals("timeout")) {
            clock.advanceNanos(Math.max(0, deadline - clock.nanos()));
        }
        if (!away.isEmpty()) {
            return new Lost(away, away.equals("broken"));
        }
        return switch (words.get(0)) {
            case "RL.USE" -> used(words);
            case "RL.POLICY" -> policy(words.get(2));
            case "RL.MULTI" -> several(words);
            case "TB.ACQUIRE", "SW.ALLOW" -> single(words);
            default -> new Refused("ERR unknown command '" + words.get(0) + "'");
        };
    }

    private Outcome policy(String name) {
        var limits = policies.get(name);
        return limits == null ? noPolicy(name) : new Answered(List.of("limits", limits, "ms", 0L));
    }

    private static Outcome noPolicy(String name) {
        return new Refused("NOPOLICY No such policy '" + name + "'");
    }

    private Outcome used(List<String> words) {
        String name = words.get(1);
        var limits = policies.get(name);
        return limits == null
                ? noPolicy(name)
                : decided(name, Clause.parse(limits), words.get(2), Long.parseLong(words.get(3)), member(words));
    }

    /** TB.ACQUIRE key capacity count period cost, or SW.ALLOW key limit window cost, with options. */
    private Outcome single(List<String> words) {
        boolean bucket = words.get(0).startsWith("TB");
        int cost = bucket ? 5 : 4;
        var clause = new ArrayList<>(List.of(bucket ? "TB" : "SW"));
        clause.addAll(words.subList(2, cost));
        words.subList(cost + 1, words.size()).stream().filter("FIXED"::equals).forEach(clause::add);
        return ofState(words.get(1), List.of(String.join(" ", clause)), Long.parseLong(words.get(cost)), "");
    }

    /** RL.MULTI n keys clauses, with the cost of each clause behind its numbers. */
    private Outcome several(List<String> words) {
        int n = Integer.parseInt(words.get(1));
        var limits = new ArrayList<String>();
        long cost = 1;
        int i = 2 + n;
        for (int clause = 0; clause < n; clause++) {
            String kind = words.get(i);
            int numbers = switch (kind) {
                case "TB", "CL" -> 3;
                case "NONE" -> 0;
                default -> 2;
            };
            var text = new ArrayList<>(words.subList(i, i + 1 + numbers));
            i += 1 + numbers;
            if (numbers > 0 && !kind.equals("CC")) {
                cost = Long.parseLong(words.get(i++));
            }
            while (!AFTER_OPTIONS.contains(words.get(i))) {
                text.add(words.get(i++));
            }
            limits.add(String.join(" ", text));
        }
        return ofState(words.get(2), limits, cost, member(words));
    }

    /** Decides by inline limits. Their times are milliseconds. */
    private Outcome ofState(String state, List<String> limits, long cost, String member) {
        int colon = state.indexOf(':');
        return decided(state.substring(0, colon), Clause.parse(limits, true), state.substring(colon + 1), cost, member);
    }

    private Outcome decided(String policy, List<Clause> clauses, String key, long cost, String member) {
        if (cost != 0) {
            calls.add(new Asked(policy, key, cost));
        }
        var table = tables.computeIfAbsent(List.of(policy, clauses), k -> new LocalLimiter(clauses, clock::nanos, 1));
        var answers = table.check(key, cost, member);
        return new Answered(List.of(five(LocalLimiter.binding(answers)), answers.stream().map(FakeServer::five).toList()));
    }

    private static List<Long> five(ClauseResult answer) {
        return List.of(
                answer.denies() ? 1L : 0L, answer.limit(), answer.remaining(), answer.retryMillis(), answer.resetMillis());
    }

    private static String member(List<String> words) {
        int at = words.indexOf("MEMBER");
        return at < 0 ? "" : words.get(at + 1);
    }

    @Override
    public synchronized void renew() {
        renewals++;
    }

    @Override
    public void close() {
        // It has no connection.
    }
}
