"""The limiter in the process: the same clauses as the server's, decided with whole nanoseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

from .clauses import NS_PER_MS, Clause, most_units
from .headers import ClauseAnswer

MAX_KEYS = 100_000
"""Keys that a table holds. The keys beyond them share one state."""

_SHARED = "\x00shared"

# The state of a clause: the instant at which a bucket is full, or (start, current, previous), or leases by member.
State = Union[int, "tuple[int, int, int]", "dict[str, int]", None]


def interval(clause: Clause) -> int:
    """The nanoseconds in which one unit comes back, as the server has them; at least 1."""
    return max(1, int(float(clause.period) / float(clause.count)))


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _bucket(clause: Clause, state: State, now: int, cost: int) -> tuple[ClauseAnswer, State]:
    """Decides a token bucket, or CL.THROTTLE, which is one."""
    unit = interval(clause)
    tat = max(state, now) if isinstance(state, int) else now
    used = _ceil(tat - now, unit)
    denied = used + cost > clause.limit and cost >= 0
    retry = -1
    if denied and cost <= clause.limit:
        retry = tat - now - (clause.limit - cost) * unit
    if not denied and cost:
        tat = max(now, tat + cost * unit)
    remaining = min(max(clause.limit - _ceil(tat - now, unit), 0), max(clause.limit, 0))
    return _answer(clause, denied, remaining, retry, tat - now), tat if tat > now else None


def _fixed(clause: Clause, state: State, now: int, cost: int) -> tuple[ClauseAnswer, State]:
    window = state if isinstance(state, tuple) else None
    start = now - now % clause.period
    count = window[1] if window and window[0] == start else 0
    denied = count + cost > clause.limit and cost >= 0
    left = start + clause.period - now
    retry = left if denied and cost <= clause.limit else -1
    if not denied:
        count = max(0, count + cost)
    answer = _answer(clause, denied, max(0, clause.limit - count), retry, left if count else 0)
    return answer, (start, count, 0) if count else None


def _decay(units: int, room: int, length: int) -> int:
    """The part of a window after which no more than room of the units of the window before it still count."""
    if units <= room:
        return 0
    return length - (_ceil((room + 1) * length, units) - 1)


def _counter(clause: Clause, state: State, now: int, cost: int) -> tuple[ClauseAnswer, State]:
    length = clause.period
    window = state if isinstance(state, tuple) else None
    start = now - now % clause.period
    current = previous = 0
    if window and window[0] == start:
        current, previous = window[1], window[2]
    elif window and window[0] == start - length:
        previous = window[1]
    elapsed = now - start
    estimate = previous * (length - elapsed) // length + current
    denied = estimate + cost > clause.limit and cost >= 0
    retry = -1
    if denied and cost <= clause.limit:
        if current + cost <= clause.limit:
            retry = _decay(previous, clause.limit - current - cost, length) - elapsed
        else:
            retry = length - elapsed + _decay(current, clause.limit - cost, length)
    if not denied and cost:
        refund = current + cost
        current, previous = max(0, refund), max(0, previous + min(0, refund))
    estimate = previous * (length - elapsed) // length + current
    if current:
        reset = length - elapsed + _decay(current, 0, length)
    else:
        reset = max(0, _decay(previous, 0, length) - elapsed)
    answer = _answer(clause, denied, max(0, clause.limit - estimate), retry, reset)
    return answer, (start, current, previous) if reset else None


def _places(clause: Clause, state: State, now: int, cost: int, member: str) -> tuple[ClauseAnswer, State]:
    leases = {m: end for m, end in state.items() if end > now} if isinstance(state, dict) else {}
    denied = cost > 0 and member not in leases and len(leases) + 1 > clause.limit
    retry = min(leases.values()) - now if denied and leases else -1
    if cost > 0 and not denied:
        leases[member] = now + clause.period
    elif cost < 0:
        leases.pop(member, None)
    reset = max(leases.values()) - now if leases else 0
    return _answer(clause, denied, max(0, clause.limit - len(leases)), retry, reset), leases or None


def _ms(ns: int) -> int:
    return _ceil(ns, NS_PER_MS) if ns > 0 else ns


def _answer(clause: Clause, denied: bool, remaining: int, retry: int, reset: int) -> ClauseAnswer:
    return ClauseAnswer(
        denies=denied,
        limit=clause.limit,
        remaining=remaining,
        retry_ms=_ms(retry),
        reset_ms=_ms(reset),
        window_ms=clause.window_ms,
        concurrent=clause.concurrent,
    )


def decide(clause: Clause, state: State, now: int, cost: int, member: str = "") -> tuple[ClauseAnswer, State]:
    """Decides one clause at an instant in nanoseconds. Returns the answer and the state if the call is admitted."""
    cost = clause.units(cost)
    if clause.kind == "CC":
        return _places(clause, state, now, cost, member)
    if clause.kind == "SW":
        return (_fixed if "FIXED" in clause.options else _counter)(clause, state, now, cost)
    if clause.kind == "NONE":
        most = most_units(clause)
        return ClauseAnswer(False, most, most, -1, 0, unlimited=True), None
    return _bucket(clause, state, now, cost)


class LocalLimiter:
    """A table of keys, each with the states of its clauses. It is used from one thread at a time.

    clock returns nanoseconds since the epoch, so that windows begin where the server's do.
    """

    def __init__(
        self, clauses: Sequence[Clause], clock: Callable[[], int], *, instances: int = 1, max_keys: int = MAX_KEYS
    ) -> None:
        self.clauses = tuple(clause.share(instances).local() for clause in clauses)
        self._clock = clock
        self._max_keys = max_keys
        self._states: dict[str, tuple[int, list[State]]] = {}
        self._swept = 0

    def __len__(self) -> int:
        return len(self._states)

    def check(self, key: str, cost: int = 1, member: str = "", *, peek: bool = False) -> list[ClauseAnswer]:
        """Decides a call and charges all clauses or none, with peek none. Returns the answer of each clause."""
        now = self._clock()
        if key not in self._states and len(self._states) >= self._max_keys:
            self._sweep(now)
            if len(self._states) >= self._max_keys:
                key = _SHARED
        states = self._states[key][1] if key in self._states else [None] * len(self.clauses)
        decided = [decide(c, s, now, cost, member) for c, s in zip(self.clauses, states)]
        if peek or any(answer.denies for answer, _ in decided):
            if cost and (peek or len(decided) > 1):
                # The answers of a call that is denied are those of one that changes nothing.
                decided = [self._peek(c, s, now, answer, member) for c, s, (answer, _) in zip(self.clauses, states, decided)]
            return [answer for answer, _ in decided]
        after = [state for _, state in decided]
        if any(state is not None for state in after):
            end = now + max(answer.reset_ms for answer, _ in decided) * NS_PER_MS
            self._states[key] = (end, after)
        else:
            self._states.pop(key, None)
        return [answer for answer, _ in decided]

    @staticmethod
    def _peek(clause: Clause, state: State, now: int, answer: ClauseAnswer, member: str) -> tuple[ClauseAnswer, State]:
        seen, state = decide(clause, state, now, 0, member)
        return answer._replace(remaining=seen.remaining, reset_ms=seen.reset_ms), state

    def _sweep(self, now: int) -> None:
        """Removes the keys that are unused again, at most once a second."""
        if now - self._swept < 1000 * NS_PER_MS:
            return
        self._swept = now
        for key in [key for key, (end, _) in self._states.items() if end <= now]:
            del self._states[key]


def binding(answers: Sequence[ClauseAnswer]) -> ClauseAnswer:
    """The answer of a call as a whole, from those of its clauses."""
    if len(answers) == 1:
        return answers[0]
    limited = [answer for answer in answers if answer.denies]
    least = min(limited or answers, key=lambda answer: answer.remaining)
    retry = -1
    if limited and all(answer.retry_ms >= 0 for answer in limited):
        retry = max(answer.retry_ms for answer in limited)
    return least._replace(retry_ms=retry, reset_ms=max(answer.reset_ms for answer in answers))
