package com.cellserver.client;

/** An answer of the server that is a fault of the program, such as WRONGTYPE or a syntax error. */
public final class ServerException extends LimiterException {
    private final String code;

    ServerException(String code, String message) {
        super(message);
        this.code = code;
    }

    /** The code at the beginning of the answer, such as WRONGTYPE. */
    public String code() {
        return code;
    }
}
