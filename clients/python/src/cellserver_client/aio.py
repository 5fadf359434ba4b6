"""The limiter for asyncio. The calls of one turn of the event loop share one write."""

from __future__ import annotations

import asyncio
import contextlib
import time
import weakref
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection, ConnectionPool

from . import metrics
from .breaker import BreakerOptions
from .core import BaseLimiter, Call, Options, Shared, changed, is_answer
from .errors import ConfigurationError, LimiterError, Unavailable
from .link import CONNECT_TIMEOUT, MAX_CONNECTIONS, connection_of, reason_of, url_options
from .reserve import ChargeWhen, Reservation
from .result import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .fastapi import LimitDependency

# The turns of the loop that a deadline waits when it is over: answers that have come while the loop was busy count.
_GRACE_TURNS = 3


class Link(Protocol):
    """What sends the calls of a limiter."""

    async def send(self, call: Call) -> Any:
        """Returns the reply, the error that the server has answered, or Unavailable. It raises nothing of these."""

    async def aclose(self) -> None:
        """Closes all connections."""


class _Turn:
    """The calls of one turn of the loop with one deadline."""

    __slots__ = ("deadline", "items")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.items: list[_Item] = []


class _Item:
    """A call and the future of its outcome."""

    __slots__ = ("flight", "future", "packed")

    def __init__(self, packed: bytes, future: asyncio.Future[Any]) -> None:
        self.packed = packed
        self.future = future
        self.flight: _Flight | None = None


class _Flight:
    """Calls that were sent together, and the task that reads their replies."""

    __slots__ = ("items", "task")

    def __init__(self, items: list[_Item], task: asyncio.Task[None]) -> None:
        self.items = items
        self.task = task


class RedisLink:
    """Connections of redis-py to one address. They belong to the event loop that uses them first.

    A call is never sent after its deadline. When the deadlines of all calls that were sent together are over, their
    connection is closed, because a late reply would be taken for that of the next call.
    """

    def __init__(self, make: Callable[[], AbstractConnection], clock: Callable[[], float]) -> None:
        self._make = make
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reset()

    def _reset(self) -> None:
        self._idle: list[AbstractConnection] = []
        self._busy = 0
        self._pending: list[_Item] = []
        self._turn: _Turn | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connecting = False
        self._scheduled = False

    async def send(self, call: Call) -> Any:
        """Sends a call with the others of this turn of the loop."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The connections of another loop cannot be used, not even to be closed.
            self._reset()
            self._loop = loop
        item = _Item(call.packed(), loop.create_future())
        self._pending.append(item)
        turn = self._turn
        if turn is None or turn.deadline < call.deadline - 0.001 or turn.deadline > call.deadline:
            turn = self._turn = _Turn(call.deadline)
            loop.call_later(max(0.0, call.deadline - self._clock()), self._over, turn, _GRACE_TURNS)
        turn.items.append(item)
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._flush)
        return await item.future

    def _over(self, turn: _Turn, grace: int) -> None:
        """Ends the calls of a turn that have no answer."""
        late = [item for item in turn.items if not item.future.done() or item.flight is not None]
        if not late:
            return
        loop = self._loop
        if grace and loop is not None:
            loop.call_soon(self._over, turn, grace - 1)
            return
        for item in late:
            if not item.future.done():
                item.future.set_result(Unavailable("timeout"))
        for item in late:
            # Calls with later deadlines may wait for replies of the same flight.
            if item.flight is not None and all(other.future.done() for other in item.flight.items):
                item.flight.task.cancel()
                item.flight = None

    def _flush(self) -> None:
        """Sends what is pending, if there is a connection for it."""
        self._scheduled = False
        self._turn = None
        pending = [item for item in self._pending if not item.future.done()]
        self._pending = pending
        if not pending:
            return
        while self._idle:
            connection = self._idle.pop()
            if _ended(connection):
                self._spawn(_close(connection))
                continue
            self._pending = []
            self._busy += 1
            flight = _Flight(pending, self._spawn(self._fly(connection, pending)))
            for item in pending:
                item.flight = flight
            return
        if not self._connecting and self._busy < MAX_CONNECTIONS:
            self._connecting = True
            self._spawn(self._connect())

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _connect(self) -> None:
        """Adds a connection. It may take longer than a deadline, so that a slow one is there for later calls."""
        connection: AbstractConnection | None = None
        try:
            connection = self._make()
            connecting: Any = connection.connect()  # type: ignore[no-untyped-call,unused-ignore]
            await asyncio.wait_for(connecting, CONNECT_TIMEOUT)
        except asyncio.CancelledError:
            await _close(connection)
            raise
        except Exception as error:
            await _close(connection)
            outcome = error if is_answer(error) else Unavailable(reason_of(error))
            for item in self._pending:
                if not item.future.done():
                    item.future.set_result(outcome)
            self._pending = []
        else:
            self._idle.append(connection)
        finally:
            self._connecting = False
        self._flush()

    async def _fly(self, connection: AbstractConnection, items: list[_Item]) -> None:
        """Sends calls on a connection and reads their replies."""
        usable = False
        outcome: BaseException = Unavailable("timeout")
        try:
            await connection.send_packed_command([b"".join([item.packed for item in items])], check_health=False)
            for item in items:
                reply: Any
                try:
                    reply = await connection.read_response()
                except Exception as error:
                    if not is_answer(error):
                        raise
                    reply = error
                if not item.future.done():
                    item.future.set_result(reply)
            usable = True
        except asyncio.CancelledError:
            pass  # by _over or aclose: the connection has replies that no call waits for
        except Exception as error:
            outcome = Unavailable(reason_of(error), broken=True)
        finally:
            self._busy -= 1
            for item in items:
                item.flight = None
                if not item.future.done():
                    item.future.set_result(outcome)
            if usable:
                self._idle.append(connection)
                if self._pending:
                    self._flush()
            else:
                await _close(connection)
        if self._pending:
            self._flush()

    async def aclose(self) -> None:
        """Closes all connections. Calls under way are unavailable."""
        if self._loop is not asyncio.get_running_loop():
            return
        tasks, idle = list(self._tasks), self._idle
        self._idle = []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in [*idle, *self._idle]:
            await _close(connection)
        self._reset()


def _ended(connection: AbstractConnection) -> bool:
    """Whether the server has closed an idle connection, as far as the loop has noticed."""
    reader = getattr(connection, "_reader", None)
    return not connection.is_connected or reader is None or bool(reader.at_eof())


async def _close(connection: AbstractConnection | None) -> None:
    if connection is not None:
        with contextlib.suppress(Exception):
            await connection.disconnect(nowait=True)


def _maker(url: str | None, client: Any) -> Callable[[], AbstractConnection]:
    """What makes connections to a URL, or as an application's client makes them."""
    if (url is None) == (client is None):
        raise ConfigurationError("a limiter needs either url or client")
    if client is None:
        assert url is not None
        pool: Any = ConnectionPool.from_url(url, **url_options(url))
    else:
        if not isinstance(client, Redis):
            raise ConfigurationError(f"client is a redis.asyncio.Redis, not a {type(client).__name__}")
        pool = client.connection_pool

    return lambda: connection_of(pool)


class Limiter(BaseLimiter):
    """A limiter for asyncio.

    url is that of the server; client is the application's redis.asyncio.Redis instead, whose settings are used for
    connections of the limiter's own. See the README for the options. Raises ConfigurationError.

    One limiter serves one event loop at a time. It is created before or after a fork; connections are made when they
    are used first.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        client: Any = None,
        breaker: BreakerOptions | None = None,
        shared: Shared | None = None,
        link: Link | None = None,
        **options: Unpack[Options],
    ) -> None:
        if shared is None:
            shared = Shared(breaker or BreakerOptions(), time.monotonic, time.time_ns, metrics.default())
        self._options = options
        super().__init__(shared=shared, **options)
        self._link: Link = link if link is not None else RedisLink(_maker(url, client), shared.clock)
        # Weak, so that a limiter made for one request is freed. The order is that of creation.
        self._family: weakref.WeakKeyDictionary[Limiter, None] = weakref.WeakKeyDictionary({self: None})
        self._background: set[asyncio.Task[None]] = set()

    def using(self, **options: Any) -> Limiter:
        """A limiter with other options on the same connections and the same breaker. limits excludes policy.

        It remembers denials and has a limiter in the process of its own: keep it rather than make one for each call.
        """
        child = Limiter(**changed(self._options, options), shared=self._shared, link=self._link)
        child._family = self._family
        self._family[child] = None
        return child

    def __call__(self, *, charge_when: ChargeWhen | None = None, **options: Any) -> LimitDependency:
        """A dependency of FastAPI with other options: Depends(limiter(policy="chat")). See LimitDependency."""
        from .fastapi import LimitDependency

        return LimitDependency(self.using(**options) if options else self, charge_when)

    async def check(
        self, request: Any = None, *, key: str | None = None, cost: int | None = None, peek: bool = False
    ) -> Result:
        """Decides a request, and charges it if it is allowed, unless peek asks only.

        key and cost replace what the options make of the request. The answer comes within the deadline. Raises
        KeyFault, ConfigurationError, ServerFault, and what the functions of the options raise.
        """
        return await self._decide(self._begin(request, key, cost, peek=peek))

    def reserve(
        self, request: Any = None, units: int | None = None, *, key: str | None = None, ttl: float = 30.0
    ) -> Reservation:
        """Takes units before the cost of a request is known: async with limiter.reserve(request, 800) as reservation.

        units and key replace what the options make of the request. ttl is the seconds, 1 to 86,400, after which the
        server gives the units back if the program has died. See Reservation. Raises ConfigurationError.
        """
        return Reservation(self, request, units, key, ttl)

    async def _decide(self, step: Call | Result) -> Result:
        """Sends what is to be sent for a decision."""
        while isinstance(step, Call):
            step = self._end(step, await self._send(step))
        if self._reads_policy and step.source == "server" and self._wants_policy():
            self._spawn(self._refresh())
        return step

    async def _send(self, call: Call) -> Any:
        try:
            return await self._link.send(call)
        except BaseException:
            self._give_back(call.ticket)
            raise

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def _refresh(self) -> None:
        """Reads the limits of the policy again. Those from before stay if they cannot be had."""
        for what, call in self._start_calls():
            if what == "get":
                with contextlib.suppress(LimiterError):
                    self._started(what, await self._link.send(call))

    async def start(self) -> None:
        """Checks the configuration of this limiter, and of those made of it. An application calls it when it starts.

        Raises ConfigurationError if a policy or a permission is missing, or the password is wrong. A server that is
        unavailable is a line in the log.
        """
        for limiter in list(self._family):
            for what, call in limiter._start_calls():
                limiter._started(what, await self._link.send(call))

    async def aclose(self) -> None:
        """Closes the connections, also for the limiters made of this one."""
        await self._link.aclose()

    async def __aenter__(self) -> Limiter:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
