package com.cellserver.client.spring;

import com.cellserver.client.HttpAnswer;
import com.cellserver.client.Result;

/** A call of a method with {@link RateLimited} that is denied. */
public final class RateLimitedException extends RuntimeException {
    private final transient Result result;
    private final transient HttpAnswer answer;

    RateLimitedException(Result result, HttpAnswer answer) {
        super("a limit denies the call: policy=" + result.policy());
        this.result = result;
        this.answer = answer;
    }

    /** The decision. */
    public Result result() {
        return result;
    }

    /** Status, header fields and body for an answer over HTTP. */
    public HttpAnswer answer() {
        return answer;
    }
}
