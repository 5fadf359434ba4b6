"""The breaker of one address: after failures no call is made for a pause."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class BreakerOptions:
    """When a breaker opens and for how long. Times are seconds."""

    in_row: int = 5
    """Failures in a row that open it."""
    window: int = 20
    """Calls that are looked back at; half of them failed open it."""
    pause: float = 1.0
    """The time without calls, plus or minus jitter."""
    jitter: float = 0.2
    """The part of the pause by which it varies."""


class Ticket(NamedTuple):
    """The permission for one call. It is given back with Breaker.end."""

    allowed: bool
    probe: bool
    turn: int


class Breaker:
    """Closed: calls are made. Open: none is, until the pause is over. Then one probe decides.

    random returns a number from 0 to 1. An outcome of a call that began before the state has changed last no longer
    counts. A breaker has no lock.
    """

    def __init__(self, options: BreakerOptions, random: Callable[[], float]) -> None:
        self._options = options
        self._random = random
        self._failed: deque[bool] = deque(maxlen=options.window)
        self._in_row = 0
        self._turn = 0
        self._until = 0.0
        self.state = "closed"
        """closed, open or half-open."""

    def begin(self, now: float) -> Ticket:
        """Says whether a call may be made now."""
        if self.state == "closed":
            return Ticket(True, False, self._turn)
        if self.state == "open" and now >= self._until:
            self._enter("half-open")
            return Ticket(True, True, self._turn)
        return Ticket(False, False, self._turn)

    def end(self, ticket: Ticket, now: float, outcome: str) -> bool:
        """Notes the outcome of a call: answered, failed or abandoned. Returns whether the breaker has opened."""
        if not ticket.allowed or ticket.turn != self._turn:
            return False
        if outcome == "abandoned":
            if ticket.probe:
                self._enter("open")
                self._until = now
        elif ticket.probe and outcome == "answered":
            self._enter("closed")
        elif ticket.probe or self._count(outcome == "failed"):
            self._enter("open")
            options = self._options
            self._until = now + options.pause * (1 - options.jitter + 2 * options.jitter * self._random())
            return True
        return False

    def _enter(self, state: str) -> None:
        self.state = state
        self._turn += 1
        self._in_row = 0
        self._failed.clear()

    def _count(self, failed: bool) -> bool:
        """Adds an outcome. Returns whether the breaker has to open."""
        self._failed.append(failed)
        if not failed:
            self._in_row = 0
            return False
        self._in_row += 1
        options = self._options
        full = len(self._failed) == options.window
        return self._in_row >= options.in_row or (full and 2 * sum(self._failed) >= options.window)
