"""Header fields and the body of a denial, after draft-ietf-httpapi-ratelimit-headers-11."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

STYLES = ("draft", "x", "both", "none")
"""The values of the option headers."""

PROBLEM_TYPE = "application/problem+json"
"""The media type of the body of a denial."""

UNLIMITED = 4294967295
"""The limit that a server answers for a key without a limit."""

_EXCEEDED = (
    "https://iana.org/assignments/http-problem-types#quota-exceeded",
    "Request cannot be satisfied as assigned quota has been exceeded",
)
_ABNORMAL = (
    "https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
    "Request not satisfied due to detection of abnormal request pattern",
)
_MAX_INTEGER = 999_999_999_999_999


class ClauseAnswer(NamedTuple):
    """The decision on one limit. Times are milliseconds, rounded up; -1 is never, or nothing to wait for."""

    denies: bool
    limit: int
    remaining: int
    retry_ms: int
    reset_ms: int
    window_ms: int = 0
    concurrent: bool = False
    unlimited: bool = False


class Answer(NamedTuple):
    """The decision on a call under one policy."""

    policy: str
    denied: bool
    blocked: bool
    binding: ClauseAnswer
    clauses: Sequence[ClauseAnswer]


def seconds_up(ms: int) -> int:
    """Milliseconds as whole seconds, rounded up; 0 for a negative number."""
    return -(-ms // 1000) if ms > 0 else 0


def _name(policy: str, i: int) -> str:
    return f"{policy}#{i + 1}" if i else policy


def _integer(n: int) -> int:
    return min(max(n, 0), _MAX_INTEGER)


def retry_after(answer: Answer) -> int | None:
    """Retry-After in seconds, at least 1. None if the call has passed or never passes."""
    if not answer.denied or answer.binding.retry_ms < 0:
        return None
    ms = answer.binding.retry_ms
    for clause in answer.clauses:
        if clause.denies:
            if clause.retry_ms < 0:
                return None
            ms = max(ms, clause.retry_ms)
    return max(seconds_up(ms), 1)


def fields(answer: Answer, style: str = "draft") -> list[tuple[str, str]]:
    """The header fields of an answer. Their names are spelled as the draft does."""
    out: list[tuple[str, str]] = []
    if style == "none":
        return out
    if style != "x":
        out += _draft(answer)
    if style != "draft":
        out += _x(answer)
    wait = retry_after(answer)
    if wait is not None:
        out.append(("Retry-After", str(wait)))
    return out


def _draft(answer: Answer) -> list[tuple[str, str]]:
    policies, limits = [], []
    for i, clause in enumerate(answer.clauses):
        name = f'"{_name(answer.policy, i)}"'
        if not clause.unlimited:
            item = f"{name};q={_integer(clause.limit)}"
            if clause.concurrent:
                item += ';qu="concurrent-requests"'
            if clause.window_ms > 0:
                item += f";w={_integer(seconds_up(clause.window_ms))}"
            policies.append(item)
        if not clause.unlimited or clause.denies:
            item = f"{name};r={_integer(clause.remaining)}"
            t = 0
            if not answer.denied:
                t = seconds_up(clause.reset_ms)
            elif clause.denies:
                t = seconds_up(clause.retry_ms)
            limits.append(f"{item};t={_integer(t)}" if t > 0 else item)
    out = []
    if policies:
        out.append(("RateLimit-Policy", ", ".join(policies)))
    if limits:
        out.append(("RateLimit", ", ".join(limits)))
    return out


def _x(answer: Answer) -> list[tuple[str, str]]:
    clause = answer.binding
    out: list[tuple[str, str]] = []
    if not clause.unlimited:
        out.append(("X-RateLimit-Limit", str(clause.limit)))
    elif not answer.denied:
        return out
    out.append(("X-RateLimit-Remaining", str(clause.remaining)))
    reset = clause.retry_ms if answer.denied else clause.reset_ms
    if reset >= 0:
        out.append(("X-RateLimit-Reset", str(seconds_up(reset))))
    return out


def problem(answer: Answer, status: int = 429, detail: str = "") -> dict[str, object]:
    """The body of a denial as a mapping."""
    violated = [_name(answer.policy, i) for i, clause in enumerate(answer.clauses) if clause.denies]
    kind, title = _EXCEEDED
    if answer.blocked:
        # A block is one of the policy, not of its clauses.
        (kind, title), violated = _ABNORMAL, [answer.policy]
    body: dict[str, object] = {"type": kind, "title": title, "status": status, "violated-policies": violated}
    if detail:
        body["detail"] = detail
    return body


def problem_body(answer: Answer, status: int = 429, detail: str = "") -> bytes:
    """The body of a denial in JSON."""
    return json.dumps(problem(answer, status, detail)).encode()
