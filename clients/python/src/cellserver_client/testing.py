"""Doubles for tests: a limiter with a clock that a test moves, and without a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from redis.exceptions import ResponseError

from . import aio, sync
from .breaker import BreakerOptions
from .clauses import NS_PER_SECOND, parse
from .core import Call, Shared
from .errors import Unavailable
from .headers import ClauseAnswer
from .keys import Key
from .local import LocalLimiter, binding
from .metrics import NoMetrics


class Asked(NamedTuple):
    """A call that has reached the server of a double."""

    policy: str
    key: str
    cost: int


class Clock:
    """A clock that stands still until it is advanced. It begins at an instant in seconds since the epoch."""

    def __init__(self, start: float = 0.0) -> None:
        self._ns = round(start * NS_PER_SECOND)

    def advance(self, seconds: float) -> None:
        """Moves the clock."""
        self._ns += round(seconds * NS_PER_SECOND)

    def seconds(self) -> float:
        """The instant in seconds."""
        return self._ns / NS_PER_SECOND

    def ns(self) -> int:
        """The instant in nanoseconds."""
        return self._ns


class _Held(NamedTuple):
    """A reservation in a FakeServer."""

    table: LocalLimiter
    key: str
    units: int
    member: str
    until: float


class FakeServer:
    """A server in the process. policies are texts of limits by the names of policies.

    A reservation that ends gives its units back as they are then: what a bucket has refilled meanwhile is not taken off.
    More units than were reserved are charged as far as there are any.
    """

    def __init__(self, clock: Clock, policies: Mapping[str, str | Iterable[str]]) -> None:
        self._clock = clock
        self._tables: dict[object, LocalLimiter] = {
            name: LocalLimiter(parse(limits), clock.ns) for name, limits in policies.items()
        }
        self._texts = dict(policies)
        self.calls: list[Asked] = []
        """The calls that the server has decided, in their order."""
        self.away = ""
        """The reason for which the server does not answer, or empty."""
        self.held: dict[tuple[str, str], _Held] = {}
        """The reservations that have not ended, by policy and ID."""

    def answer(self, call: Call) -> Any:
        """What the server answers to a call."""
        if self.away:
            if self.away == "timeout":
                self._clock.advance(max(0.0, call.deadline - self._clock.seconds()))
            return Unavailable(self.away)
        if call.words[:2] == ["RL.POLICY", "GET"]:
            limits = self._texts.get(call.words[2])
            if limits is None:
                return _no_policy(call.words[2])
            return ["limits", [limits] if isinstance(limits, str) else list(limits), "ms", 0]
        for which in [which for which, held in self.held.items() if held.until <= self._clock.seconds()]:
            self._release(self.held.pop(which), None)
        if call.words[0] in ("RL.COMMIT", "RL.CANCEL", "RL.RENEW"):
            return self._settle(call)
        table = self._table(call)
        if table is None:
            return _no_policy(call.target.policy)
        if call.cost and not call.peek:
            self.calls.append(Asked(call.target.policy, call.key, call.cost))
        answers = table.check(call.key, call.cost, call.member, peek=call.peek)
        whole = binding(answers)
        if call.ttl_ms and not whole.denies:
            until = self._clock.seconds() + call.ttl_ms / 1000
            self.held[call.target.policy, call.id] = _Held(table, call.key, call.cost, call.member, until)
        return [_five(whole), [_five(answer) for answer in answers]]

    def _settle(self, call: Call) -> int:
        """Ends or renews a reservation."""
        command, _, id, *rest = call.words
        held = self.held.pop((call.target.policy, id), None)
        if held is None:
            return 0 if command == "RL.RENEW" else -1
        if command == "RL.RENEW":
            self.held[call.target.policy, id] = held._replace(until=self._clock.seconds() + int(rest[0]) / 1000)
        else:
            self._release(held, int(rest[0]) if command == "RL.COMMIT" else None)
        return 1

    @staticmethod
    def _release(held: _Held, used: int | None) -> None:
        """Charges what was used in the place of what is held."""
        more = (used or 0) - held.units
        if more:
            held.table.check(held.key, more, held.member)

    def _table(self, call: Call) -> LocalLimiter | None:
        target = call.target
        if not target.clauses:
            return self._tables.get(target.policy)
        if target not in self._tables:
            self._tables[target] = LocalLimiter(target.clauses, self._clock.ns)
        return self._tables[target]


def _five(answer: ClauseAnswer) -> list[int]:
    return [int(answer.denies), answer.limit, answer.remaining, answer.retry_ms, answer.reset_ms]


def _no_policy(name: str) -> ResponseError:
    return ResponseError(f"NOPOLICY No such policy '{name}'")


class _Link:
    """The connection to a FakeServer."""

    def __init__(self, server: FakeServer) -> None:
        self._server = server

    async def send(self, call: Call) -> Any:
        return self._server.answer(call)

    async def aclose(self) -> None:
        pass


class _SyncLink:
    """The connection to a FakeServer."""

    def __init__(self, server: FakeServer) -> None:
        self._server = server

    def send(self, call: Call) -> Any:
        return self._server.answer(call)

    def close(self) -> None:
        pass


class _Doubled:
    """What the doubles of both limiters have."""

    clock: Clock
    server: FakeServer

    @property
    def calls(self) -> list[Asked]:
        """The calls that have reached the server."""
        return self.server.calls

    def advance(self, seconds: float) -> None:
        """Moves the clock."""
        self.clock.advance(seconds)

    def go_away(self, reason: str = "timeout") -> None:
        """Lets the server answer nothing from now on. A call takes its whole deadline if the reason is timeout."""
        self.server.away = reason

    def come_back(self) -> None:
        """Lets the server answer again."""
        self.server.away = ""


def _double(
    clock: Clock | None, policies: Mapping[str, str | Iterable[str]] | None, options: dict[str, Any]
) -> tuple[Clock, FakeServer, Shared]:
    clock = clock or Clock()
    # Without jitter a test says exactly when the breaker closes.
    breaker = options.pop("breaker", None) or BreakerOptions(jitter=0.0)
    return clock, FakeServer(clock, policies or {}), Shared(breaker, clock.seconds, clock.ns, NoMetrics())


class FakeLimiter(_Doubled, aio.Limiter):
    """A double of aio.Limiter in virtual time.

    Its server decides by limits, or by policies: texts of limits by the names of policies. The other options are those of
    Limiter.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        key: Key,
        on_unavailable: str = "allow",
        policies: Mapping[str, str | Iterable[str]] | None = None,
        **options: Any,
    ) -> None:
        self.clock, self.server, shared = _double(clock, policies, options)
        super().__init__(key=key, on_unavailable=on_unavailable, shared=shared, link=_Link(self.server), **options)


class FakeSyncLimiter(_Doubled, sync.Limiter):
    """A double of sync.Limiter in virtual time. See FakeLimiter."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        key: Key,
        on_unavailable: str = "allow",
        policies: Mapping[str, str | Iterable[str]] | None = None,
        **options: Any,
    ) -> None:
        self.clock, self.server, shared = _double(clock, policies, options)
        super().__init__(key=key, on_unavailable=on_unavailable, shared=shared, link=_SyncLink(self.server), **options)
