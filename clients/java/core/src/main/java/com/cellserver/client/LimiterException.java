package com.cellserver.client;

/** The base of all exceptions of this package. A server that is unavailable is none of them: see {@link OnUnavailable}. */
public class LimiterException extends RuntimeException {
    LimiterException(String message) {
        super(message);
    }
}
