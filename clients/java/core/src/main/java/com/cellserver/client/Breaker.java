package com.cellserver.client;

import java.util.function.DoubleSupplier;

/**
 * Closed: calls are made. Open: none is, until the pause is over. Then one probe decides. An outcome of a call that began
 * before the state has changed last no longer counts. A breaker has no lock. Times are nanoseconds.
 */
final class Breaker {
    enum State { CLOSED, OPEN, HALF_OPEN }

    enum Outcome { ANSWERED, FAILED, ABANDONED }

    /** The permission for one call. It is given back with end. */
    record Ticket(boolean allowed, boolean probe, long turn) {}

    private final BreakerOptions options;
    private final DoubleSupplier random;
    private final boolean[] failed;
    private int next;
    private int count;
    private int failures;
    private int inRow;
    private long turn;
    private long until;
    private State state = State.CLOSED;

    // Tickets differ by turn only, so each turn makes one of each kind.
    private Ticket call = new Ticket(true, false, 0);
    private Ticket skip = new Ticket(false, false, 0);

    /** random returns a number from 0 to 1. */
    Breaker(BreakerOptions options, DoubleSupplier random) {
        this.options = options;
        this.random = random;
        this.failed = new boolean[options.window()];
    }

    State state() {
        return state;
    }

    /** Says whether a call may be made now. */
    Ticket begin(long now) {
        if (state == State.CLOSED) {
            return call;
        }
        if (state == State.OPEN && now - until >= 0) {
            enter(State.HALF_OPEN);
            return new Ticket(true, true, turn);
        }
        return skip;
    }

    /** Notes the outcome of a call. Returns whether the breaker has opened. */
    boolean end(Ticket ticket, long now, Outcome outcome) {
        if (!ticket.allowed || ticket.turn != turn) {
            return false;
        }
        if (outcome == Outcome.ABANDONED) {
            if (ticket.probe) {
                enter(State.OPEN);
                until = now;
            }
        } else if (ticket.probe && outcome == Outcome.ANSWERED) {
            enter(State.CLOSED);
        } else if (ticket.probe || opens(outcome == Outcome.FAILED)) {
            enter(State.OPEN);
            double factor = 1 - options.jitter() + 2 * options.jitter() * random.getAsDouble();
            until = now + (long) (options.pause().toNanos() * factor);
            return true;
        }
        return false;
    }

    private void enter(State entered) {
        state = entered;
        turn++;
        call = new Ticket(true, false, turn);
        skip = new Ticket(false, false, turn);
        inRow = 0;
        next = 0;
        count = 0;
        failures = 0;
    }

    /** Adds an outcome. Returns whether the breaker has to open. */
    private boolean opens(boolean failure) {
        if (count == failed.length) {
            failures -= failed[next] ? 1 : 0;
        } else {
            count++;
        }
        failed[next] = failure;
        next = (next + 1) % failed.length;
        if (!failure) {
            inRow = 0;
            return false;
        }
        failures++;
        inRow++;
        return inRow >= options.inRow() || (count == failed.length && 2 * failures >= failed.length);
    }
}
