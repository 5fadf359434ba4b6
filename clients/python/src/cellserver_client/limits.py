"""Storage for the package limits, and with it for Flask-Limiter and slowapi. Importing the module registers it.

The URIs are cellserver://host:6379, cellservers:// with TLS and cellserver+unix:///path, and each of them with async+ for
limits.aio. The strategies gcra, sliding and fixed ask once for a hit and its statistics; those of limits itself work too.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from limits.aio import strategies as aio_strategies
from limits.aio.storage import MovingWindowSupport as AsyncMovingWindowSupport
from limits.aio.storage import Storage as AsyncStorage
from limits.aio.storage.base import SlidingWindowCounterSupport as AsyncSlidingWindowCounterSupport
from limits.limits import GRANULARITIES, RateLimitItem
from limits.storage import MovingWindowSupport, SlidingWindowCounterSupport, Storage
from limits.strategies import (
    STRATEGIES,
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    RateLimiter,
    SlidingWindowCounterRateLimiter,
)
from limits.util import WindowStats

from . import aio, sync
from .core import BaseLimiter, Call
from .errors import ConfigurationError, LimiterError, Unavailable
from .keys import bounded
from .result import Result
from .wire import state_key

__all__ = [
    "AsyncCellserverStorage",
    "CellserverStorage",
    "FixedRateLimiter",
    "GCRARateLimiter",
    "SlidingRateLimiter",
    "StorageUnavailable",
]

_CLAUSES = {
    "gcra": "TB {limit} {limit} {expiry}",
    "sliding": "SW {limit} {expiry} COUNTER ANCHOR FIRST",
    "fixed": "SW {limit} {expiry} FIXED ANCHOR FIRST",
    "log": "SW {limit} {expiry} LOG",
    "slots": "SW {limit} {expiry} BUCKETS 60",
}
# The default of sw-log-max-entries of the server. A moving window beyond it forgets its hits by slots, which is later.
_MAX_LOG = 10_000
_MAX_LIMITERS = 1000
_MAX_REPLIES = 10_000

# The seconds for which the statistics of a key are those of its last hit in this process.
_FRESH = 1.0


class StorageUnavailable(LimiterError):
    """The server is away. Flask-Limiter and slowapi have options for it, such as swallow_errors and a fallback."""


class _Window(NamedTuple):
    """A limit of a key: what the name of the key says, or the caller."""

    limit: int
    expiry: int


def _window_of(key: str) -> _Window:
    """The limit in the name of a key, which RateLimitItem.key_for ends with amount, multiples and granularity."""
    try:
        _, amount, multiples, granularity = key.rsplit("/", 3)
        return _Window(int(amount), GRANULARITIES[granularity].GRANULARITY.seconds * int(multiples))
    except (KeyError, ValueError):
        raise ConfigurationError("a key is one that RateLimitItem.key_for makes") from None


def _moving_of(limit: int) -> str:
    """How a moving window is kept."""
    return "log" if limit <= _MAX_LOG else "slots"


class _Known(NamedTuple):
    """A reply for a key, and when it was made: by a clock that does not go back, and since the epoch."""

    result: Result
    at: float
    wall: float

    @property
    def reset(self) -> float:
        """The instant since the epoch at which the key has units again, or after a hit that has passed, all of them."""
        wait = self.result.reset_after if self.result.retry_after is None else self.result.retry_after
        return self.wall + (wait or 0.0)


L = TypeVar("L", bound=BaseLimiter)


class _Common(Generic[L]):
    """What both storages have."""

    _root: Any
    _raises: bool

    def _configure(self, kind: Any, uri: str, key_prefix: str, on_unavailable: str, options: dict[str, Any]) -> None:
        if on_unavailable not in ("raise", "allow", "local"):
            raise ConfigurationError(f"on_unavailable of a storage is raise, allow or local, not {on_unavailable!r}")
        self._raises = on_unavailable == "raise"
        scheme, rest = uri.removeprefix("async+").split("://", 1)
        url = {"cellserver": "redis", "cellservers": "rediss", "cellserver+unix": "unix"}[scheme] + "://" + rest
        self._root = kind(
            url,
            policy=key_prefix,
            limits="SW 1 1",
            key=_no_key,
            on_unavailable="deny" if self._raises else on_unavailable,
            **options,
        )
        self._lock = threading.Lock()
        self._limiters: OrderedDict[tuple[str, _Window], L] = OrderedDict()
        self._replies: OrderedDict[str, _Known] = OrderedDict()

    def _limiter(self, mode: str, window: _Window) -> L:
        """The limiter of a window, which remembers denials. They are made as limits come up."""
        which = (mode, window)
        with self._lock:
            limiter = self._limiters.get(which)
            if limiter is None:
                clause = _CLAUSES[mode].format(limit=window.limit, expiry=window.expiry)
                limiter = self._limiters[which] = self._root.using(policy=self._root.target.policy, limits=clause)
                if len(self._limiters) > _MAX_LIMITERS:
                    self._limiters.popitem(last=False)
            else:
                self._limiters.move_to_end(which)
        return limiter

    def _note(self, key: str, result: Result, window: _Window) -> _Known:
        """Keeps the reply for a key. Raises StorageUnavailable."""
        if result.source == "unavailable":
            if self._raises:
                raise StorageUnavailable("the server is unavailable")
            result = result._replace(limit=window.limit, remaining=window.limit)
        known = _Known(result, time.monotonic(), time.time())
        with self._lock:
            self._replies[key] = known
            self._replies.move_to_end(key)
            if len(self._replies) > _MAX_REPLIES:
                self._replies.popitem(last=False)
        return known

    def _recent(self, key: str) -> _Known | None:
        """The last reply for a key, if it is still true."""
        with self._lock:
            known = self._replies.get(key)
        if known is None or time.monotonic() - known.at > _FRESH or time.time() >= known.reset:
            return None
        return known

    def _forget(self, key: str) -> list[str]:
        """Forgets what is known of a key. Returns the command that forgets it in the server."""
        with self._lock, self._root._shared.lock:
            self._replies.pop(key, None)
            for limiter in self._limiters.values():
                limiter._cache.forget((bounded(key), ""))
        return ["DEL", state_key(self._root.target.policy, bounded(key), 1)]

    def _forget_all(self) -> None:
        with self._lock:
            self._replies.clear()
            self._limiters.clear()

    def _call(self, words: list[str]) -> Call:
        now = self._root._shared.clock()
        return Call(self._root.target, words, "", 0, "", now, now + 1.0)

    def _scan(self, cursor: str) -> Call:
        return self._call(["SCAN", cursor, "MATCH", self._root.target.policy + ":*", "COUNT", "1000"])

    @staticmethod
    def _answered(outcome: Any) -> Any:
        if isinstance(outcome, Unavailable):
            raise StorageUnavailable(f"the server is unavailable ({outcome.reason})")
        if isinstance(outcome, BaseException):
            raise LimiterError(str(outcome))
        return outcome

    @property
    def base_exceptions(self) -> type[Exception] | tuple[type[Exception], ...]:
        """What limits wraps into a StorageError if it is asked to."""
        return LimiterError

    # The methods of limits for its own strategies, from a reply.

    @staticmethod
    def _count(known: _Known, window: _Window, amount: int) -> int:
        """The hits in the window, with those that were denied by the call."""
        result = known.result
        return window.limit - result.remaining + (0 if result.allowed else amount)

    @staticmethod
    def _moving(known: _Known, window: _Window) -> tuple[float, int]:
        """The instant at which the window of the oldest hit began, and the hits."""
        hits = window.limit - known.result.remaining
        return (known.reset - window.expiry if hits else known.wall, hits)

    @staticmethod
    def _sliding(known: _Known, window: _Window) -> tuple[int, float, int, float]:
        """The hits as those of the current window: the server has weighed the previous one already."""
        return (0, 0.0, window.limit - known.result.remaining, max(0.0, known.reset - known.wall))

    @staticmethod
    def _stats(known: _Known) -> WindowStats:
        return WindowStats(known.reset, known.result.remaining)


def _no_key(request: Any) -> str | None:
    return None  # the calls of a storage have theirs


class CellserverStorage(_Common[sync.Limiter], Storage, MovingWindowSupport, SlidingWindowCounterSupport):
    """The storage for threads. limits, Flask-Limiter and slowapi make it of a URI such as cellserver://localhost:6379.

    on_unavailable is raise (StorageUnavailable), allow or local, which needs instances. key_prefix begins the names of
    keys. The other options are those of sync.Limiter, such as deadline and denial_cache. Raises ConfigurationError.
    """

    STORAGE_SCHEME: ClassVar[list[str]] = ["cellserver", "cellservers", "cellserver+unix"]  # type: ignore[misc]

    def __init__(
        self,
        uri: str,
        wrap_exceptions: bool = False,
        key_prefix: str = "limits",
        on_unavailable: str = "raise",
        **options: Any,
    ) -> None:
        super().__init__(uri, wrap_exceptions)
        self._configure(sync.Limiter, uri, key_prefix, on_unavailable, options)

    def ask(self, mode: str, key: str, window: _Window, cost: int, *, peek: bool = False) -> _Known:
        """Asks the server for a hit. Raises StorageUnavailable."""
        return self._note(key, self._limiter(mode, window).check(key=key, cost=cost, peek=peek), window)

    def stats(self, mode: str, key: str, window: _Window) -> WindowStats:
        """The statistics of a key, from its last hit if that was less than a second ago."""
        return self._stats(self._recent(key) or self.ask(mode, key, window, 1, peek=True))

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Counts a hit of the strategy fixed-window."""
        window = _window_of(key)
        return self._count(self.ask("fixed", key, window, amount), window, amount)

    def get(self, key: str) -> int:
        """The hits of the strategy fixed-window."""
        window = _window_of(key)
        return self._count(self.ask("fixed", key, window, 1, peek=True), window, 0)

    def get_expiry(self, key: str) -> float:
        """The end of the window of the strategy fixed-window."""
        return self.stats("fixed", key, _window_of(key)).reset_time

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Counts a hit of the strategy moving-window."""
        return self.ask(_moving_of(limit), key, _Window(limit, expiry), amount).result.allowed

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """The beginning of the window and the hits of the strategy moving-window."""
        window = _Window(limit, expiry)
        return self._moving(self.ask(_moving_of(limit), key, window, 1, peek=True), window)

    def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Counts a hit of the strategy sliding-window-counter."""
        return self.ask("sliding", key, _Window(limit, expiry), amount).result.allowed

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """The hits of the strategy sliding-window-counter, all of them as those of the current window."""
        window = _window_of(key)
        return self._sliding(self.ask("sliding", key, window, 1, peek=True), window)

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        """Forgets the hits of a key."""
        self.clear(key)

    def _command(self, words: Call) -> Any:
        return self._answered(self._root._link.send(words))

    def clear(self, key: str) -> None:
        """Forgets the hits of a key."""
        self._command(self._call(self._forget(key)))

    def check(self) -> bool:
        """Whether the server answers."""
        try:
            self._command(self._call(["PING"]))
        except LimiterError:
            return False
        return True

    def reset(self) -> int | None:
        """Forgets all keys with the prefix of the storage. Returns their number."""
        self._forget_all()
        cursor, deleted = "0", 0
        while True:
            found = self._command(self._scan(cursor))
            cursor, keys = _text(found[0]), [_text(key) for key in found[1]]
            if keys:
                deleted += self._command(self._call(["DEL", *keys]))
            if cursor == "0":
                return deleted

    def close(self) -> None:
        """Closes the connections."""
        self._root.close()


class AsyncCellserverStorage(_Common[aio.Limiter], AsyncStorage, AsyncMovingWindowSupport, AsyncSlidingWindowCounterSupport):
    """The storage for limits.aio, of a URI such as async+cellserver://localhost:6379. See CellserverStorage."""

    STORAGE_SCHEME: ClassVar[list[str]] = [  # type: ignore[misc]
        f"async+{scheme}" for scheme in CellserverStorage.STORAGE_SCHEME
    ]

    def __init__(
        self,
        uri: str,
        wrap_exceptions: bool = False,
        key_prefix: str = "limits",
        on_unavailable: str = "raise",
        **options: Any,
    ) -> None:
        super().__init__(uri, wrap_exceptions)
        self._configure(aio.Limiter, uri, key_prefix, on_unavailable, options)

    async def ask(self, mode: str, key: str, window: _Window, cost: int, *, peek: bool = False) -> _Known:
        """See CellserverStorage."""
        return self._note(key, await self._limiter(mode, window).check(key=key, cost=cost, peek=peek), window)

    async def stats(self, mode: str, key: str, window: _Window) -> WindowStats:
        """See CellserverStorage."""
        return self._stats(self._recent(key) or await self.ask(mode, key, window, 1, peek=True))

    async def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """See CellserverStorage."""
        window = _window_of(key)
        return self._count(await self.ask("fixed", key, window, amount), window, amount)

    async def get(self, key: str) -> int:
        """See CellserverStorage."""
        window = _window_of(key)
        return self._count(await self.ask("fixed", key, window, 1, peek=True), window, 0)

    async def get_expiry(self, key: str) -> float:
        """See CellserverStorage."""
        return (await self.stats("fixed", key, _window_of(key))).reset_time

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """See CellserverStorage."""
        return (await self.ask(_moving_of(limit), key, _Window(limit, expiry), amount)).result.allowed

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """See CellserverStorage."""
        window = _Window(limit, expiry)
        return self._moving(await self.ask(_moving_of(limit), key, window, 1, peek=True), window)

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """See CellserverStorage."""
        return (await self.ask("sliding", key, _Window(limit, expiry), amount)).result.allowed

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """See CellserverStorage."""
        window = _window_of(key)
        return self._sliding(await self.ask("sliding", key, window, 1, peek=True), window)

    async def clear_sliding_window(self, key: str, expiry: int) -> None:
        """See CellserverStorage."""
        await self.clear(key)

    async def _command(self, words: Call) -> Any:
        return self._answered(await self._root._link.send(words))

    async def clear(self, key: str) -> None:
        """See CellserverStorage."""
        await self._command(self._call(self._forget(key)))

    async def check(self) -> bool:
        """See CellserverStorage."""
        try:
            await self._command(self._call(["PING"]))
        except LimiterError:
            return False
        return True

    async def reset(self) -> int | None:
        """See CellserverStorage."""
        self._forget_all()
        cursor, deleted = "0", 0
        while True:
            found = await self._command(self._scan(cursor))
            cursor, keys = _text(found[0]), [_text(key) for key in found[1]]
            if keys:
                deleted += await self._command(self._call(["DEL", *keys]))
            if cursor == "0":
                return deleted

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._root.aclose()


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _of(item: RateLimitItem, identifiers: tuple[str, ...]) -> tuple[str, _Window]:
    return item.key_for(*identifiers), _Window(item.amount, item.get_expiry())


class _Strategy(RateLimiter):
    """A strategy with one call for a hit and its statistics.

    With the storage in memory that Flask-Limiter and slowapi fall back to, it is the strategy of limits beside it.
    """

    mode: ClassVar[str]
    beside: ClassVar[type[RateLimiter]]

    def __new__(cls, storage: Any) -> Any:
        """Makes the strategy for a CellserverStorage, or that of limits for another one."""
        return super().__new__(cls) if isinstance(storage, CellserverStorage) else cls.beside(storage)

    def hit(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        """Charges a hit if there is room for it."""
        storage: Any = self.storage
        key, window = _of(item, identifiers)
        allowed: bool = storage.ask(self.mode, key, window, cost).result.allowed
        return allowed

    def test(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        """Whether there is room for a hit."""
        storage: Any = self.storage
        key, window = _of(item, identifiers)
        allowed: bool = storage.ask(self.mode, key, window, cost, peek=True).result.allowed
        return allowed

    def get_window_stats(self, item: RateLimitItem, *identifiers: str) -> WindowStats:
        """The instant of the next unit or, if there are some, of all, and the remaining units."""
        storage: Any = self.storage
        stats: WindowStats = storage.stats(self.mode, *_of(item, identifiers))
        return stats


class GCRARateLimiter(_Strategy):
    """The strategy gcra: a bucket of the amount, which comes back unit by unit over the time of the limit."""

    mode, beside = "gcra", MovingWindowRateLimiter


class SlidingRateLimiter(_Strategy):
    """The strategy sliding: a window that weighs the one before it."""

    mode, beside = "sliding", SlidingWindowCounterRateLimiter


class FixedRateLimiter(_Strategy):
    """The strategy fixed: a window from the first hit on."""

    mode, beside = "fixed", FixedWindowRateLimiter


class _AsyncStrategy(aio_strategies.RateLimiter):
    """See _Strategy."""

    mode: ClassVar[str]
    beside: ClassVar[type[aio_strategies.RateLimiter]]

    def __new__(cls, storage: Any) -> Any:
        """See _Strategy."""
        return super().__new__(cls) if isinstance(storage, AsyncCellserverStorage) else cls.beside(storage)

    async def hit(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        """See _Strategy."""
        storage: Any = self.storage
        key, window = _of(item, identifiers)
        allowed: bool = (await storage.ask(self.mode, key, window, cost)).result.allowed
        return allowed

    async def test(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        """See _Strategy."""
        storage: Any = self.storage
        key, window = _of(item, identifiers)
        allowed: bool = (await storage.ask(self.mode, key, window, cost, peek=True)).result.allowed
        return allowed

    async def get_window_stats(self, item: RateLimitItem, *identifiers: str) -> WindowStats:
        """See _Strategy."""
        storage: Any = self.storage
        stats: WindowStats = await storage.stats(self.mode, *_of(item, identifiers))
        return stats


class AsyncGCRARateLimiter(_AsyncStrategy):
    """See GCRARateLimiter."""

    mode, beside = "gcra", aio_strategies.MovingWindowRateLimiter


class AsyncSlidingRateLimiter(_AsyncStrategy):
    """See SlidingRateLimiter."""

    mode, beside = "sliding", aio_strategies.SlidingWindowCounterRateLimiter


class AsyncFixedRateLimiter(_AsyncStrategy):
    """See FixedRateLimiter."""

    mode, beside = "fixed", aio_strategies.FixedWindowRateLimiter


def _register() -> None:
    table: Any = STRATEGIES
    table.update({kind.mode: kind for kind in (GCRARateLimiter, SlidingRateLimiter, FixedRateLimiter)})
    table = aio_strategies.STRATEGIES
    table.update({kind.mode: kind for kind in (AsyncGCRARateLimiter, AsyncSlidingRateLimiter, AsyncFixedRateLimiter)})


_register()
