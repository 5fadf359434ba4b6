package com.cellserver.client;

/** A request from which no key can be made, such as one without the address of its peer. */
public final class KeyException extends LimiterException {
    /** An exception with a message for the programmer. */
    public KeyException(String message) {
        super(message);
    }
}
