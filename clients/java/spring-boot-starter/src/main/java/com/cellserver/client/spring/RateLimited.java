package com.cellserver.client.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Limits the calls of a method of a bean. A call that is denied throws {@link RateLimitedException}, which a controller answers
 * with 429 or 503. A method that returns a Mono, a Flux or a CompletionStage does not wait: what it returns ends with the exception.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface RateLimited {
    /** A policy of the server, or with limits a name for them. */
    String policy() default "";

    /** Clauses such as "TB 200 100 1", in place of a policy. */
    String[] limits() default {};

    /** An expression of SpEL over the arguments, such as "#user.id". A call whose key is null is not limited. */
    String key();

    /** An expression of SpEL that is the cost of a call, 0 or more, such as "#body.maxTokens". */
    String cost() default "1";
}
