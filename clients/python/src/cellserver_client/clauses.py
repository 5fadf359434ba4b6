"""Clauses of limits: reading their text, writing them for the server, and the share of one instance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .errors import ConfigurationError
from .headers import UNLIMITED

NS_PER_SECOND = 1_000_000_000
NS_PER_MS = 1_000_000

_SUFFIXES = {
    "ms": NS_PER_MS,
    "s": NS_PER_SECOND,
    "m": 60 * NS_PER_SECOND,
    "h": 3600 * NS_PER_SECOND,
    "d": 86400 * NS_PER_SECOND,
}
_DURATION = re.compile(r"([0-9]+)(ms|s|m|h|d)?\Z", re.ASCII)
_INTEGER = re.compile(r"[-+]?[0-9]+\Z", re.ASCII)
_MAX_INT64 = 2**63 - 1

# The lengths in days of windows of the calendar, as a limiter in the process has them.
_CALENDAR_DAYS = {"DAY": 1, "WEEK": 7, "MONTH": 30, "YEAR": 365}

# The number of required numbers of each kind, its time included.
_NUMBERS = {"TB": 3, "SW": 2, "CL": 3, "CC": 2, "NONE": 0}


@dataclass(frozen=True)
class Clause:
    """One limit. A number that a kind does not have is 0."""

    kind: str
    """TB, SW, CL, CC or NONE, which is no limit."""
    limit: int = 0
    """Units that a key has at most: capacity, limit of a window, max_burst + 1, places."""
    count: int = 0
    """Units that come back in each period (TB and CL)."""
    period: int = 0
    """Nanoseconds: the period of TB and CL, the window of SW, the lease of CC. 0 for a window of the calendar."""
    calendar: str = ""
    """DAY, WEEK, MONTH or YEAR in the place of a window."""
    options: tuple[str, ...] = ()
    """The words behind the numbers without CALLS, as the server takes them with MS."""
    calls: bool = False
    """Whether each call counts as one unit, whatever its cost."""

    @property
    def window_ms(self) -> int:
        """The length of the window in milliseconds, rounded up; 0 if the clause has none."""
        return -(-self.period // NS_PER_MS) if self.kind == "SW" else 0

    @property
    def concurrent(self) -> bool:
        """Whether the units are places for requests that run."""
        return self.kind == "CC"

    def words(self, cost: int | None) -> list[str]:
        """The words of the clause in a command with MS. None writes no cost, as kinds without one do."""
        if self.kind == "NONE":
            return ["NONE"]
        words = [self.kind, str(self.limit - 1 if self.kind == "CL" else self.limit)]
        if self.kind in ("TB", "CL"):
            words.append(str(self.count))
        words.append(self.calendar or str(self.period // NS_PER_MS))
        if cost is not None and self.kind != "CC":
            words.append(str(self.units(cost)))
        return [*words, *self.options]

    def units(self, cost: int) -> int:
        """What a call of a cost takes of the clause."""
        return max(0, min(cost, 1)) if self.calls else cost

    def share(self, instances: int) -> Clause:
        """The part of the limit that one of several instances decides by itself."""
        if self.kind == "NONE":
            return self
        return replace(self, limit=share(self.limit, instances), count=share(self.count, instances))

    def local(self) -> Clause:
        """The clause that the process decides in the place of this one.

        A bucket becomes GREEDY. A window becomes FIXED if it is, or if it is one of the calendar, which becomes
        1, 7, 30 or 365 days; otherwise it becomes COUNTER.
        """
        if self.kind != "SW":
            return replace(self, options=())
        mode = "FIXED" if "FIXED" in self.options or self.calendar else "COUNTER"
        period = _CALENDAR_DAYS[self.calendar] * _SUFFIXES["d"] if self.calendar else self.period
        return replace(self, calendar="", period=period, options=(mode,))

    def __str__(self) -> str:
        words = self.words(None)
        if self.period and not self.calendar:
            words[_NUMBERS[self.kind]] += "ms"
        return " ".join([*words, "CALLS"] if self.calls else words)


def share(units: int, instances: int) -> int:
    """The part of a number of units that one of several instances has: at least 1, unless there are none."""
    return max(1, units // instances) if units > 0 and instances > 1 else units


def most_units(clause: Clause) -> int:
    """The limit as answers have it."""
    return UNLIMITED if clause.kind == "NONE" else clause.limit


def parse(limits: str | Iterable[str], *, ms: bool = False) -> tuple[Clause, ...]:
    """Reads clauses such as "TB 200 100 1" or "SW 1000 1h FIXED".

    A text may have several clauses, as an answer of RL.POLICY GET has. Times have a suffix (ms, s, m, h, d), or are
    seconds, or milliseconds with ms. The server checks the options. Raises ConfigurationError.
    """
    groups: list[list[str]] = []
    for word in (limits if isinstance(limits, str) else " ".join(limits)).split():
        if word.upper() in _NUMBERS:
            groups.append([word])
        elif groups:
            groups[-1].append(word)
        else:
            raise ConfigurationError(f"limits begin with TB, SW, CL, CC or NONE, not with {word!r}")
    if not groups:
        raise ConfigurationError("limits have at least one clause, such as 'TB 200 100 1'")
    return tuple(_clause(words, NS_PER_MS if ms else NS_PER_SECOND) for words in groups)


def _clause(words: Sequence[str], unit: int) -> Clause:
    text, kind = " ".join(words), words[0].upper()
    n = _NUMBERS[kind]
    if kind == "NONE" and len(words) == 1:
        return Clause(kind)
    if kind == "NONE" or len(words) <= n:
        raise ConfigurationError(f"{text!r} does not have the {n} numbers of {kind}")
    limit = _number(words[1], text, -1 if kind == "CL" else 0) + (1 if kind == "CL" else 0)
    count = _number(words[2], text, 1) if n == 3 else 0
    calendar, period = "", 0
    if kind == "SW" and words[n].upper() in _CALENDAR_DAYS:
        calendar = words[n].upper()
    else:
        period = _duration(words[n], text, unit)
    options = _options(words[n + 1 :], unit)
    calls = options[-1:] == ("CALLS",)
    return Clause(kind, limit, count, period, calendar, options[:-1] if calls else options, calls)


def _options(words: Sequence[str], unit: int) -> tuple[str, ...]:
    """The words behind the numbers, upper case but for a zone. The instant of ANCHOR becomes milliseconds."""
    out: list[str] = []
    for i, word in enumerate(words):
        before = words[i - 1].upper() if i else ""
        if before != "ZONE":
            word = word.upper()
        if before == "ANCHOR" and _INTEGER.match(word):
            word = str(int(word) * unit // NS_PER_MS)
        out.append(word)
    return tuple(out)


def _number(word: str, text: str, least: int) -> int:
    n = int(word) if _INTEGER.match(word) and len(word) <= 20 else least - 1
    if not least <= n <= _MAX_INT64:
        raise ConfigurationError(f"{text!r} has {word!r} where a whole number of at least {least} is wanted")
    return n


def _duration(word: str, text: str, unit: int) -> int:
    match = _DURATION.match(word.lower())
    if match and len(word) <= 22:
        ns = int(match[1]) * (_SUFFIXES[match[2]] if match[2] else unit)
        if 0 < ns <= _MAX_INT64:
            return ns
    raise ConfigurationError(f"{text!r} has {word!r} where a time such as 60, 1500ms or 1h is wanted")
