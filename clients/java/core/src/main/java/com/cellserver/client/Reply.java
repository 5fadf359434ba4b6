package com.cellserver.client;

import java.util.List;

/**
 * What a reply of the server says.
 *
 * @param refused 0 if the call has passed; with PARTIAL the units that were not granted
 * @param whole the numbers of the call as a whole
 * @param clauses the numbers of each clause
 */
record Reply(long refused, ClauseResult whole, List<ClauseResult> clauses) {
    private static final int FIELDS = 5;

    /** A reply that is none of a limiter. */
    static final class Malformed extends Exception {
        Malformed() {
            super("the reply is not one of a limiter", null, false, false);
        }
    }

    /** Whether a call with this cost never passes, since it is above a limit. */
    boolean never(long cost) {
        if (refused == 0 || whole.retryMillis() >= 0) {
            return false;
        }
        if (cost > whole.limit()) {
            return true;
        }
        for (ClauseResult clause : clauses) {
            if (clause.denies() && clause.retryMillis() < 0 && cost > clause.limit()) {
                return true;
            }
        }
        return false;
    }

    /** Whether a block without an end has denied a call with this cost. */
    boolean blocked(long cost) {
        return refused != 0 && whole.retryMillis() < 0 && !never(cost);
    }

    /**
     * Reads five integers, or a list of those and of five for each clause. known are the clauses of the limits, from which
     * the answers have their windows, or empty.
     */
    static Reply read(Object reply, List<Clause> known) throws Malformed {
        if (!(reply instanceof List<?> list) || list.isEmpty()) {
            throw new Malformed();
        }
        if (list.get(0) instanceof Long refused) {
            var only = five(list, known.size() == 1 ? known.get(0) : null);
            return new Reply(refused, only, List.of(only));
        }
        if (list.size() != 2 || !(list.get(1) instanceof List<?> each) || each.isEmpty()) {
            throw new Malformed();
        }
        var clauses = new ClauseResult[each.size()];
        for (int i = 0; i < clauses.length; i++) {
            clauses[i] = five(each.get(i), known.size() == clauses.length ? known.get(i) : null);
        }
        // A block is in the whole answer, and a single clause has the words of it.
        var whole = five(list.get(0), clauses.length == 1 && known.size() == 1 ? known.get(0) : null);
        return new Reply((Long) ((List<?>) list.get(0)).get(0), whole, List.of(clauses));
    }

    private static ClauseResult five(Object values, Clause clause) throws Malformed {
        if (!(values instanceof List<?> list) || list.size() != FIELDS) {
            throw new Malformed();
        }
        for (Object value : list) {
            if (!(value instanceof Long)) {
                throw new Malformed();
            }
        }
        long limit = (Long) list.get(1);
        return new ClauseResult(
                (Long) list.get(0) != 0,
                limit,
                (Long) list.get(2),
                Math.max((Long) list.get(3), -1),
                Math.max((Long) list.get(4), -1),
                clause == null ? 0 : clause.windowMillis(),
                clause != null && clause.concurrent(),
                limit == ClauseResult.UNLIMITED);
    }
}
