package com.cellserver.client;

/**
 * Makes the key of a request.
 *
 * @param <R> the type of requests
 */
@FunctionalInterface
public interface Key<R> {
    /** The key, or null for a request that is not limited. */
    String of(R request);
}
