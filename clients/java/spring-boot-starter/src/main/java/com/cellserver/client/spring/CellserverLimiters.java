package com.cellserver.client.spring;

import com.cellserver.client.Limiter;
import com.cellserver.client.RequestInfo;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** The limiters of an application by their policies, on one connection. */
public final class CellserverLimiters {
    private final Limiter<RequestInfo> base;
    private final ConcurrentMap<Name, Limiter<RequestInfo>> made = new ConcurrentHashMap<>();

    private record Name(String policy, List<String> limits) {}

    CellserverLimiters(Limiter<RequestInfo> base) {
        this.base = base;
    }

    /** The limiter of a policy, or of inline limits with a name for them. The same arguments have the same limiter. */
    public Limiter<RequestInfo> get(String policy, List<String> limits) {
        return made.computeIfAbsent(new Name(policy, limits), name -> base.using(options -> {
            if (!name.limits.isEmpty()) {
                options.limits(name.limits.toArray(String[]::new));
            }
            if (!name.policy.isEmpty() || name.limits.isEmpty()) {
                options.policy(name.policy);
            }
        }));
    }
}
