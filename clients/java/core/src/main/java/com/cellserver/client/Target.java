package com.cellserver.client;

import java.util.ArrayList;
import java.util.List;

/**
 * What a limiter asks for in each of its calls: a policy, or inline limits with a name for them. It makes the words of calls.
 *
 * @param policy the name of the policy, or that of the inline limits
 * @param clauses the inline limits, or empty
 * @param className the option CLASS, or empty
 * @param keep the option KEEP, or empty
 */
record Target(String policy, List<Clause> clauses, String className, String keep) {
    /** The key of the check at the start. It is an address, as policies of addresses need one. */
    static final String START_KEY = "192.0.2.1";

    private static final int MAX_CLAUSES = 16;

    /**
     * What a call has beside its target, key and cost. Texts are empty for none.
     *
     * @param mode PEEK, PARTIAL, FORCE or empty
     * @param member the member of a clause of places
     * @param id the ID of the call, or of the reservation
     * @param ttlMillis the time to live of the reservation; 0 for none
     */
    record CallOptions(String mode, String member, String id, long ttlMillis) {
        static final CallOptions NONE = new CallOptions("", "", "", 0);
    }

    /** The key of the state of clause i, counted from 1, of inline limits. No two keys share a state. */
    String stateKey(String key, int i) {
        int end = key.length();
        while (end > 0 && key.charAt(end - 1) == '#') {
            end--;
        }
        int at = key.lastIndexOf('#', end - 1);
        boolean alike = at >= 0 && isIndex(key.substring(at + 1, end));
        String state = policy + ":" + key + (alike ? "#" : "");
        return i > 1 ? state + "#" + i : state;
    }

    private static boolean isIndex(String digits) {
        if (digits.isEmpty() || digits.length() > 2 || digits.charAt(0) == '0') {
            return false;
        }
        if (!digits.chars().allMatch(c -> c >= '0' && c <= '9')) {
            return false;
        }
        int n = Integer.parseInt(digits);
        return n > 1 && n <= MAX_CLAUSES;
    }

    /**
     * The command of a call.
     *
     * @throws ConfigurationException for what inline limits cannot do: CLASS and KEEP, and PARTIAL and FORCE unless there
     *     is one clause, which is TB or SW
     */
    List<String> words(String key, long cost, CallOptions call) {
        var out = new ArrayList<String>(12);
        if (clauses.isEmpty()) {
            out.add("RL.USE");
            out.add(policy);
            out.add(key);
            out.add(Long.toString(cost));
            option(out, call.mode);
            option(out, "CLASS", className);
            option(out, "KEEP", keep);
            end(out, call.member, call);
            out.add("WITHDETAILS");
            return out;
        }
        if (!className.isEmpty() || !keep.isEmpty()) {
            throw new ConfigurationException("inline limits have no class and no keep: make a policy of them");
        }
        String kind = clauses.get(0).kind();
        if (clauses.size() == 1 && (kind.equals("TB") || kind.equals("SW"))) {
            var clause = clauses.get(0).words(cost);
            out.add(kind.equals("TB") ? "TB.ACQUIRE" : "SW.ALLOW");
            out.add(stateKey(key, 1));
            out.addAll(clause.subList(1, clause.size()));
            option(out, call.mode);
            end(out, "", call);
            return out;
        }
        if (!call.mode.isEmpty() && !call.mode.equals("PEEK")) {
            throw new ConfigurationException(call.mode + " needs a policy, or one limit that is TB or SW");
        }
        out.add("RL.MULTI");
        out.add(Integer.toString(clauses.size()));
        for (int i = 1; i <= clauses.size(); i++) {
            out.add(stateKey(key, i));
        }
        for (Clause clause : clauses) {
            out.addAll(clause.words(cost));
        }
        // CC has no units there: a call for none would take a place.
        boolean looks = call.mode.isEmpty() && cost == 0 && clauses.stream().anyMatch(clause -> clause.kind().equals("CC"));
        option(out, looks ? "PEEK" : call.mode);
        end(out, call.member, call);
        out.add("WITHDETAILS");
        return out;
    }

    private static void end(List<String> out, String member, CallOptions call) {
        option(out, "MEMBER", member);
        if (call.ttlMillis > 0) {
            option(out, "RESERVE", call.id);
            out.add(Long.toString(call.ttlMillis));
        } else {
            option(out, "ID", call.id);
        }
        out.add("MS");
    }

    private static void option(List<String> out, String word) {
        if (!word.isEmpty()) {
            out.add(word);
        }
    }

    private static void option(List<String> out, String name, String value) {
        if (!value.isEmpty()) {
            out.add(name);
            out.add(value);
        }
    }

    /** The command that checks the configuration, which creates no key. Null for inline limits, which need no policy. */
    List<String> startWords(String member) {
        return clauses.isEmpty() ? words(START_KEY, 0, new CallOptions("", member, "", 0)) : null;
    }

    /** The command that ends a reservation with the units that were used. */
    List<String> commitWords(String key, String id, long used) {
        var words = new ArrayList<>(List.of(id));
        if (clauses.stream().anyMatch(Clause::calls)) {
            // Inline limits have no CALLS on the server, so it takes the units of each clause.
            clauses.stream()
                    .filter(clause -> clause.kind().equals("TB") || clause.kind().equals("SW"))
                    .forEach(clause -> words.add(clause.calls() ? "1" : Long.toString(used)));
        } else {
            words.add(Long.toString(used));
        }
        return settling("RL.COMMIT", key, words.toArray(String[]::new));
    }

    /** The command that gives all units of a reservation back. */
    List<String> cancelWords(String key, String id) {
        return settling("RL.CANCEL", key, id);
    }

    /** The command that gives a reservation its time to live again. */
    List<String> renewWords(String key, String id, long ttlMillis) {
        return settling("RL.RENEW", key, id, Long.toString(ttlMillis), "MS");
    }

    private List<String> settling(String command, String key, String... words) {
        var out = new ArrayList<String>();
        out.add(command);
        out.add(clauses.isEmpty() ? key : stateKey(key, 1));
        out.addAll(List.of(words));
        option(out, "POLICY", clauses.isEmpty() ? policy : "");
        return out;
    }
}
