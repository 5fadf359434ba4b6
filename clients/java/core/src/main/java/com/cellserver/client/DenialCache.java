package com.cellserver.client;

import java.util.LinkedHashMap;
import java.util.Map;

/** Denials that are repeated from memory: one with a wait of r for min(r, cap). It has no lock. Times are nanoseconds. */
final class DenialCache<K> {
    /** Denials that are kept; the least recently used one makes room. */
    static final int MAX_ENTRIES = 10_000;

    private record Entry(long until, long since, long cost, long limit, Result result) {}

    private final long cap;
    private final LinkedHashMap<K, Entry> entries = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<K, Entry> eldest) {
            return size() > MAX_ENTRIES;
        }
    };

    DenialCache(long cap) {
        this.cap = cap;
    }

    int size() {
        return entries.size();
    }

    /** Keeps a denial. One without a wait is not kept, nor is one of cost 0 or less. */
    void store(K call, long cost, Result result, long now) {
        long wait = result.whole().retryMillis();
        if (cost <= 0 || wait <= 0 || cap <= 0) {
            return;
        }
        // A cost above the least limit never passes, which is another denial.
        long limit = Long.MAX_VALUE;
        for (ClauseResult clause : result.policies()) {
            limit = Math.min(limit, clause.limit());
        }
        long kept = Math.min(Arithmetic.multiply(wait, Clause.NANOS_PER_MILLI), cap);
        entries.put(call, new Entry(now + kept, now, cost, limit, result));
    }

    /** Forgets the denial of a call, whose key has got units back. */
    void forget(K call) {
        entries.remove(call);
    }

    /** The denial of a call that costs as much or more, up to the limit, as it is now. Null if there is none. */
    Result find(K call, long cost, long now) {
        if (cost <= 0 || entries.isEmpty()) {
            return null;
        }
        Entry entry = entries.get(call);
        if (entry == null) {
            return null;
        }
        if (now - entry.until >= 0) {
            entries.remove(call);
            return null;
        }
        return cost < entry.cost || cost > entry.limit ? null : entry.result.repeated(now - entry.since);
    }
}
