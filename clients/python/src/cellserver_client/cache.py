"""Denials that are repeated from memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_ENTRIES = 10_000
"""Denials that are kept; the least recently used one makes room."""


class DenialCache(Generic[T]):
    """Keeps a denial with a wait of r seconds for min(r, cap) seconds. It has no lock."""

    def __init__(self, cap: float, max_entries: int = MAX_ENTRIES) -> None:
        self._cap = cap
        self._max_entries = max_entries
        self._entries: OrderedDict[object, tuple[float, float, int, int, T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def store(self, call: object, cost: int, limit: int, retry_after: float | None, now: float, value: T) -> None:
        """Keeps a denial.

        limit is the least limit in it: a cost above that never passes, which is another denial. One that never passes
        has no wait and is not kept, nor is one of cost 0 or less.
        """
        if cost <= 0 or not retry_after or self._cap <= 0:
            return
        self._entries[call] = (now + min(retry_after, self._cap), now, cost, limit, value)
        self._entries.move_to_end(call)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

    def forget(self, call: object) -> None:
        """Forgets the denial of a call."""
        self._entries.pop(call, None)

    def find(self, call: object, cost: int, now: float) -> tuple[T, float] | None:
        """The denial of a call that costs as much or more, up to the limit, and the seconds since it was made."""
        entry = self._entries.get(call)
        if entry is None:
            return None
        until, since, least, most, value = entry
        if now >= until:
            del self._entries[call]
            return None
        if not least <= cost <= most:
            return None
        self._entries.move_to_end(call)
        return value, now - since
