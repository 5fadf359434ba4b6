package com.cellserver.client;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongSupplier;

/** What sends the commands of limiters. */
interface Link extends AutoCloseable {
    /** What has become of a command. */
    sealed interface Outcome permits Answered, Refused, Lost {}

    /** A reply. */
    record Answered(Object reply) implements Outcome {}

    /** An error that the server has answered. Its text begins with its code. */
    record Refused(String text) implements Outcome {}

    /** No answer. broken says that the connection ended during the call, so that one with an ID may be sent again. */
    record Lost(String reason, boolean broken) implements Outcome {}

    /** The deadline has passed. */
    Lost TIMEOUT = new Lost("timeout", false);

    /**
     * Sends a command, unless its deadline passes before there is a connection. The future has an outcome, and never an
     * exception. It may stay open for ever: the caller sees to the deadline, and cancels what it no longer waits for.
     *
     * @param deadline nanoseconds on the clock
     */
    CompletableFuture<Outcome> send(List<String> words, long deadline, LongSupplier clock);

    /** Leaves the connection, which may lead nowhere. The next command makes another one. */
    void renew();

    /** Ends the connection. */
    @Override
    void close();
}
