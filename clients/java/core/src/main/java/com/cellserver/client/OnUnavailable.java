package com.cellserver.client;

/** What decides a call that the server does not decide in time. */
public enum OnUnavailable {
    /** The call passes. */
    ALLOW,
    /** The call is denied, with status 503 in HTTP. */
    DENY,
    /** A limiter in the process decides by this instance's share of the limits. */
    LOCAL
}
