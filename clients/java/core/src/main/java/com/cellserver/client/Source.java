package com.cellserver.client;

/** What has made a decision. */
public enum Source {
    /** The server. */
    SERVER,
    /** A denial of the server that is repeated from memory. */
    CACHE,
    /** The limiter in the process. */
    LOCAL,
    /** The option onUnavailable, without limits. */
    UNAVAILABLE,
    /** Nothing: the request has no key. */
    NONE;

    private final String label = name().toLowerCase(java.util.Locale.ROOT);

    /** The name as metrics have it, in lower case. */
    public String label() {
        return label;
    }
}
