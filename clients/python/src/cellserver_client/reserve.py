"""Reservations: units that are taken before the cost of a call is known, and settled at its end."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import wire
from .core import BaseLimiter, Call
from .errors import ConfigurationError
from .result import NOT_LIMITED, Result

if TYPE_CHECKING:
    from . import aio, sync

ChargeWhen = Callable[[int], bool]
"""A function of the status of an answer: whether its request is charged."""

MIN_TTL, MAX_TTL = 1.0, 86_400.0
"""The bounds of the time to live of a reservation, in seconds."""

MAX_RENEWED = 3600.0
"""The seconds for which a reservation that nothing ends is renewed."""


class _Base:
    """What both reservations have."""

    def __init__(self, limiter: BaseLimiter, request: Any, units: int | None, key: str | None, ttl: float) -> None:
        if not MIN_TTL <= ttl <= MAX_TTL:
            raise ConfigurationError(f"ttl is {MIN_TTL} to {MAX_TTL} seconds, not {ttl}")
        if units is not None and units < 0:
            raise ConfigurationError(f"a reservation has 0 units or more, not {units}")
        self.result: Result = NOT_LIMITED
        """The decision. A reservation that is denied holds nothing, and ends without a call."""
        self.actual: float = units if units is not None else limiter._cost_of(request)
        """The units that the work has cost, which its end charges, rounded up. At first those that are reserved."""
        self._request, self._key, self._ttl = request, key, ttl
        self._hold: Call | None = None
        self._until = 0.0

    def __bool__(self) -> bool:
        return self.result.allowed

    def _first(self, limiter: BaseLimiter) -> Call | Result:
        """The call that reserves. 0 units are not held: the call only asks whether the key is denied."""
        units = math.ceil(self.actual)
        return limiter._begin(self._request, self._key, units, math.ceil(self._ttl * 1000) if units else 0)

    def _take(self, limiter: BaseLimiter, call: Call | Result, result: Result) -> bool:
        """Notes the decision. Returns whether the server holds units."""
        self.result = result
        if isinstance(call, Call) and call.ttl_ms and result.allowed and result.source == "server":
            self._hold = call
            self._until = limiter._shared.clock() + MAX_RENEWED
        return self._hold is not None

    def _ending(self, limiter: BaseLimiter, *, commit: bool) -> Call | None:
        """The call that ends the reservation. None if it has ended, or holds nothing."""
        hold, self._hold = self._hold, None
        if hold is None:
            return None
        used = max(0, math.ceil(self.actual)) if commit else None
        return limiter._settling(hold, wire.settle_words(limiter.target, hold.key, hold.id, used))

    def _renewing(self, limiter: BaseLimiter) -> Call | None:
        """The call that gives the reservation its time to live again. None if it ends now."""
        hold = self._hold
        if hold is None or limiter._shared.clock() >= self._until:
            return None
        return limiter._settling(hold, wire.renew_words(limiter.target, hold.key, hold.id, hold.ttl_ms))


class Reservation(_Base):
    """A reservation of aio.Limiter: async with limiter.reserve(request, 800) as reservation.

    Its end commits the units in actual; an exception cancels it. While it lasts it is renewed. Neither end raises
    anything. If the program dies, the server gives the units back after the time to live.
    """

    def __init__(self, limiter: aio.Limiter, request: Any, units: int | None, key: str | None, ttl: float) -> None:
        super().__init__(limiter, request, units, key, ttl)
        self._limiter = limiter
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Reservation:
        first = self._first(self._limiter)
        if self._take(self._limiter, first, await self._limiter._decide(first)):
            self._plan()
        return self

    def _plan(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._ttl / 2, self._due)

    def _due(self) -> None:
        if self._hold is not None:
            self._limiter._spawn(self._renew())
            self._plan()

    async def _renew(self) -> None:
        call = self._renewing(self._limiter)
        if call is not None:
            await self._settle(call)

    async def _settle(self, call: Call) -> None:
        step: Call | int | None = call
        while isinstance(step, Call):
            call = step
            step = self._limiter._settled(call, await self._limiter._send(call))

    async def _end(self, *, commit: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
        call = self._ending(self._limiter, commit=commit)
        if call is not None:
            # A caller that is cancelled meanwhile does not keep the call from being sent.
            await asyncio.shield(self._limiter._spawn(self._settle(call)))

    async def commit(self) -> None:
        """Charges actual in the place of the units that were reserved, and ends the reservation."""
        await self._end(commit=True)

    async def cancel(self) -> None:
        """Gives all units back, and ends the reservation."""
        await self._end(commit=False)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end(commit=error is None)


async def settle(reservation: Reservation, charge_when: ChargeWhen, status: int | None) -> None:
    """Commits a reservation if charge_when is true for the status, and cancels it otherwise, or without a status."""
    charged = False
    try:
        charged = status is not None and charge_when(status)
    finally:
        await reservation._end(commit=charged)


def settle_sync(reservation: SyncReservation, charge_when: ChargeWhen, status: int | None) -> None:
    """See settle."""
    charged = False
    try:
        charged = status is not None and charge_when(status)
    finally:
        reservation._end(commit=charged)


class SyncReservation(_Base):
    """A reservation of sync.Limiter: with limiter.reserve(request, 800) as reservation. See Reservation.

    One thread of the process renews all reservations.
    """

    def __init__(self, limiter: sync.Limiter, request: Any, units: int | None, key: str | None, ttl: float) -> None:
        super().__init__(limiter, request, units, key, ttl)
        self._limiter = limiter

    def __enter__(self) -> SyncReservation:
        first = self._first(self._limiter)
        if self._take(self._limiter, first, self._limiter._decide(first)):
            _renewals.add(self, self._ttl / 2, self._renew)
        return self

    def _renew(self) -> None:
        call = self._renewing(self._limiter)
        if call is not None:
            self._settle(call)

    def _settle(self, call: Call) -> None:
        step: Call | int | None = call
        while isinstance(step, Call):
            call = step
            step = self._limiter._settled(call, self._limiter._send(call))

    def _end(self, *, commit: bool) -> None:
        _renewals.remove(self)
        call = self._ending(self._limiter, commit=commit)
        if call is not None:
            self._settle(call)

    def commit(self) -> None:
        """Charges actual in the place of the units that were reserved, and ends the reservation."""
        self._end(commit=True)

    def cancel(self) -> None:
        """Gives all units back, and ends the reservation."""
        self._end(commit=False)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end(commit=error is None)


class _Renewals:
    """The thread that calls functions in equal intervals of their own. It ends when there is none left."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Begins anew after a fork: the thread is the parent's."""
        self._condition = threading.Condition()
        self._due: dict[object, tuple[float, float, Callable[[], None]]] = {}
        self._running = False

    def add(self, owner: object, interval: float, renew: Callable[[], None]) -> None:
        """Calls renew each interval seconds until owner is removed."""
        with self._condition:
            self._due[owner] = (self._clock() + interval, interval, renew)
            if not self._running:
                threading.Thread(target=self._run, daemon=True).start()
                self._running = True
            else:
                self._condition.notify()

    def remove(self, owner: object) -> None:
        """Ends the calls of owner."""
        with self._condition:
            self._due.pop(owner, None)

    def _run(self) -> None:
        while True:
            with self._condition:
                if not self._due:
                    self._running = False
                    return
                now = self._clock()
                left = min(due for due, _, _ in self._due.values()) - now
                if left > 0:
                    self._condition.wait(left)
                    continue
                late = [(owner, *rest) for owner, rest in self._due.items() if rest[0] <= now]
                for owner, _, interval, renew in late:
                    self._due[owner] = (now + interval, interval, renew)
            for _, _, _, renew in late:
                with contextlib.suppress(Exception):  # a reservation must not end the others'
                    renew()


_renewals = _Renewals(time.monotonic)

if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_renewals.reset)
