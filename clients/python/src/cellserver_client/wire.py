"""The words of calls and the meaning of replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .clauses import Clause
from .errors import ConfigurationError
from .headers import UNLIMITED, ClauseAnswer

START_KEY = "192.0.2.1"
"""The key of the check at the start. It is an address, as policies of addresses need one."""

_MAX_CLAUSES = 16
_FIELDS = 5


class Target(NamedTuple):
    """What a limiter asks for in each of its calls: a policy, or inline limits with a name for them."""

    policy: str
    clauses: tuple[Clause, ...] = ()
    class_: str = ""
    keep: str = ""


def state_key(name: str, key: str, i: int) -> str:
    """The key of the state of clause i, counted from 1, of inline limits. No two keys share a state."""
    state = f"{name}:{key}"
    digits = key.rstrip("#").rpartition("#")
    if digits[1] and digits[2].isascii() and digits[2].isdigit():
        n = digits[2]
        if not n.startswith("0") and len(n) < 3 and 1 < int(n) <= _MAX_CLAUSES:
            state += "#"
    return f"{state}#{i}" if i > 1 else state


def words(
    target: Target, key: str, cost: int = 1, *, mode: str = "", member: str = "", id: str = "", ttl_ms: int = 0
) -> list[str]:
    """The command of a call. mode is empty, PEEK, PARTIAL or FORCE.

    Raises ConfigurationError for what inline limits cannot do: CLASS and KEEP, and PARTIAL and FORCE unless there is one
    clause, which is TB or SW.
    """
    clauses = target.clauses
    if not clauses:
        out = ["RL.USE", target.policy, key, str(cost)]
        out += [mode] if mode else []
        out += ["CLASS", target.class_] if target.class_ else []
        out += ["KEEP", target.keep] if target.keep else []
        return out + _end(member, id, ttl_ms) + ["WITHDETAILS"]
    if target.class_ or target.keep:
        raise ConfigurationError("inline limits have no class and no keep: make a policy of them")
    if len(clauses) == 1 and clauses[0].kind in ("TB", "SW"):
        name = "TB.ACQUIRE" if clauses[0].kind == "TB" else "SW.ALLOW"
        out = [name, state_key(target.policy, key, 1), *clauses[0].words(cost)[1:]]
        out += [mode] if mode else []
        return out + _end("", id, ttl_ms)
    if mode not in ("", "PEEK"):
        raise ConfigurationError(f"{mode} needs a policy, or one limit that is TB or SW")
    out = ["RL.MULTI", str(len(clauses)), *(state_key(target.policy, key, i + 1) for i in range(len(clauses)))]
    for clause in clauses:
        out += clause.words(cost)
    if not mode and cost == 0 and any(clause.concurrent for clause in clauses):
        mode, id = "PEEK", ""  # CC has no quantity there: a call of 0 units would take a place
    out += [mode] if mode else []
    return out + _end(member, id, ttl_ms) + ["WITHDETAILS"]


def _end(member: str, id: str, ttl_ms: int) -> list[str]:
    out = ["MEMBER", member] if member else []
    if id:
        out += ["RESERVE", id, str(ttl_ms)] if ttl_ms > 0 else ["ID", id]
    return [*out, "MS"]


def start_words(target: Target, member: str = "") -> list[str] | None:
    """The command that checks the configuration, which creates no key. None for inline limits, which need no policy."""
    return None if target.clauses else words(target, START_KEY, 0, member=member)


class Reply(NamedTuple):
    """What a reply says. Times are milliseconds, or -1 for none."""

    denied: int
    """0 if the call has passed; with PARTIAL the units that were not granted."""
    whole: ClauseAnswer
    clauses: tuple[ClauseAnswer, ...]

    def never(self, cost: int) -> bool:
        """Whether a call with this cost never passes, since it is above a limit."""
        if not self.denied or self.whole.retry_ms >= 0:
            return False
        return cost > self.whole.limit or any(c.denies and c.retry_ms < 0 and cost > c.limit for c in self.clauses)

    def blocked(self, cost: int) -> bool:
        """Whether a block without an end has denied a call with this cost."""
        return bool(self.denied) and self.whole.retry_ms < 0 and not self.never(cost)


def read(reply: Any, clauses: Sequence[Clause] = ()) -> Reply:
    """Reads five integers, or a list of those and of five for each clause. Raises ValueError.

    clauses are those of the target, if they are known: from them the answers have their windows.
    """
    if not isinstance(reply, list) or not reply:
        raise ValueError("the reply is not one of a limiter")
    if type(reply[0]) is int:
        whole, each = _five(reply), [reply]
    elif len(reply) == 2 and isinstance(reply[1], list) and reply[1]:
        whole, each = _five(reply[0]), reply[1]
    else:
        raise ValueError("the reply is not one of a limiter")
    answers = tuple(map(_five, each))
    if len(clauses) == len(answers):
        answers = tuple(
            answer._replace(window_ms=clause.window_ms, concurrent=clause.concurrent)
            for answer, clause in zip(answers, clauses)
        )
    if len(answers) == 1:
        # A block is in the whole answer, and the clause has the words of it.
        whole = whole._replace(window_ms=answers[0].window_ms, concurrent=answers[0].concurrent)
    denied = reply[0] if type(reply[0]) is int else reply[0][0]
    return Reply(denied, whole, answers)


def _five(values: Any) -> ClauseAnswer:
    if not isinstance(values, list) or len(values) != _FIELDS or any(type(v) is not int for v in values):
        raise ValueError("the reply is not one of a limiter")
    refused, limit, remaining, retry, reset = values
    return ClauseAnswer(refused != 0, limit, remaining, max(retry, -1), max(reset, -1), unlimited=limit == UNLIMITED)


def settle_words(target: Target, key: str, id: str, used: int | None) -> list[str]:
    """The command that ends a reservation: RL.COMMIT with the units that were used, or RL.CANCEL for None."""
    if used is None:
        return ["RL.CANCEL", _settled(target, key), id, *_of_policy(target)]
    units = [str(used)]
    if any(clause.calls for clause in target.clauses):
        # The server knows nothing of CALLS in inline limits: it takes the units of each clause.
        units = ["1" if clause.calls else str(used) for clause in target.clauses if clause.kind in ("TB", "SW")]
    return ["RL.COMMIT", _settled(target, key), id, *units, *_of_policy(target)]


def renew_words(target: Target, key: str, id: str, ttl_ms: int) -> list[str]:
    """The command that gives a reservation its time to live again."""
    return ["RL.RENEW", _settled(target, key), id, str(ttl_ms), "MS", *_of_policy(target)]


def _settled(target: Target, key: str) -> str:
    return state_key(target.policy, key, 1) if target.clauses else key


def _of_policy(target: Target) -> list[str]:
    return [] if target.clauses else ["POLICY", target.policy]
