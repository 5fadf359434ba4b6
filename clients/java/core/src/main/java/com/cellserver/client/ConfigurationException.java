package com.cellserver.client;

/** An option that is missing or wrong, or a policy or permission that the server lacks at the start. */
public final class ConfigurationException extends LimiterException {
    /** An exception with a message for the operator of the application. */
    public ConfigurationException(String message) {
        super(message);
    }
}
