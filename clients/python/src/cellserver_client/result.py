"""The decision on a call, and the answer to a request that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from . import headers, wire
from .headers import Answer, ClauseAnswer
from .local import binding


class Result(NamedTuple):
    """The decision on a call. Times are seconds."""

    allowed: bool
    limit: int
    """Units that a key has at most. 0 if no limiter has decided."""
    remaining: int
    retry_after: float | None
    """The time until the same call would pass. None if it has passed, or never does."""
    reset_after: float | None
    """The time until no unit is in use. None if that is never."""
    source: str
    """server, cache (a denial repeated from memory), local, unavailable, or none for a request that is not limited."""
    policy: str = ""
    policies: tuple[ClauseAnswer, ...] = ()
    """The decision on each clause of the limits."""
    never: bool = False
    """Whether the cost is above the limit, so that waiting does not help."""
    blocked: bool = False
    """Whether a block without an end denies the key."""
    answer: Answer | None = None
    """The numbers for header fields. None unless the server has decided."""

    def __bool__(self) -> bool:
        return self.allowed


NOT_LIMITED = Result(True, 0, 0, None, 0.0, "none")
"""The result for a request whose key is None."""


def _seconds(ms: int) -> float | None:
    return ms / 1000 if ms >= 0 else None


def result_of(policy: str, reply: wire.Reply, cost: int, *, source: str = "server") -> Result:
    """The result of a reply to a call with this cost."""
    whole = reply.whole
    blocked = reply.blocked(cost)
    return Result(
        not reply.denied,
        whole.limit,
        whole.remaining,
        _seconds(whole.retry_ms),
        _seconds(whole.reset_ms),
        source,
        policy,
        reply.clauses,
        reply.never(cost),
        blocked,
        Answer(policy, bool(reply.denied), blocked, whole, reply.clauses) if source == "server" else None,
    )


def repeated(result: Result, passed: float) -> Result:
    """A denial some seconds later."""
    ms = int(passed * 1000 + 1e-6)  # whole milliseconds that are over, in spite of binary fractions

    def later(clause: ClauseAnswer) -> ClauseAnswer:
        denies, limit, remaining, retry, reset, window, concurrent, unlimited = clause
        retry = max(0, retry - ms) if retry >= 0 else -1
        reset = max(0, reset - ms) if reset >= 0 else -1
        return ClauseAnswer(denies, limit, remaining, retry, reset, window, concurrent, unlimited)

    answer = result.answer
    assert answer is not None  # only answers of the server are kept
    whole, clauses = later(answer.binding), tuple(map(later, answer.clauses))
    return Result(
        False,
        result.limit,
        result.remaining,
        _seconds(whole.retry_ms),
        _seconds(whole.reset_ms),
        "cache",
        result.policy,
        clauses,
        result.never,
        result.blocked,
        Answer(answer.policy, True, answer.blocked, whole, clauses),
    )


def respond(result: Result, style: str) -> tuple[int, list[tuple[str, str]], bytes]:
    """The status, the header fields and the body of the answer to a request. Status 0: the request goes on.

    A request that goes on has fields only if the server has decided.
    """
    answer = result.answer
    if result.allowed:
        return 0, headers.fields(answer, style) if answer is not None else [], b""
    if result.source == "unavailable":
        body = b'{"type": "about:blank", "title": "Service Unavailable", "status": 503}'
        return 503, [("Retry-After", "1")], body
    if answer is not None:
        fields = headers.fields(answer, style)
    else:
        # A local decision tells nothing about the limit of all instances.
        fields = []
        answer = Answer(result.policy, True, result.blocked, binding(result.policies), result.policies)
        wait = headers.retry_after(answer)
        if wait is not None and style != "none":
            fields.append(("Retry-After", str(wait)))
    detail = f"The cost of the request exceeds the limit of {result.limit}." if result.never else ""
    return 429, fields, headers.problem_body(answer, 429, detail)


def merged(fields: Iterable[tuple[str, str]], present: Callable[[str], bool]) -> list[tuple[str, str]]:
    """The header fields that an answer does not have yet. The limiter that is nearest to the application wins."""
    return [(name, value) for name, value in fields if not present(name.lower())]
