package com.cellserver.client;

/** Which header fields answers have. */
public enum HeaderStyle {
    /** RateLimit-Policy and RateLimit, after draft-ietf-httpapi-ratelimit-headers-11. */
    DRAFT,
    /** X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. */
    X,
    /** Those of DRAFT and those of X. */
    BOTH,
    /** None. */
    NONE
}
