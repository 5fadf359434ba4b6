"""The limiter for programs without an event loop: WSGI, workers, scripts. Threads may share it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from redis import Redis
from redis.connection import ConnectionPool

from . import metrics
from .breaker import BreakerOptions
from .core import BaseLimiter, Call, Options, Shared, changed, is_answer
from .errors import ConfigurationError, LimiterError, Unavailable
from .link import CONNECT_TIMEOUT, MAX_SYNC_CONNECTIONS, connection_of, reason_of, url_options
from .reserve import SyncReservation
from .result import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Link(Protocol):
    """What sends the calls of a limiter."""

    def send(self, call: Call) -> Any:
        """Returns the reply, the error that the server has answered, or Unavailable. It raises nothing of these."""

    def close(self) -> None:
        """Closes all connections."""


class _Socket:
    """A socket whose operations end at a deadline together, and not after a timeout each."""

    def __init__(self, sock: Any, clock: Callable[[], float]) -> None:
        self._sock = sock
        self._clock = clock
        self.deadline: float | None = None

    def _limit(self) -> None:
        if self.deadline is not None:
            left = self.deadline - self._clock()
            if left <= 0:
                raise TimeoutError("the deadline is over")
            self._sock.settimeout(left)

    def recv(self, *args: Any) -> bytes:
        self._limit()
        received: bytes = self._sock.recv(*args)
        return received

    def recv_into(self, *args: Any) -> int:
        self._limit()
        received: int = self._sock.recv_into(*args)
        return received

    def sendall(self, *args: Any) -> None:
        self._limit()
        self._sock.sendall(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


class RedisLink:
    """Connections of redis-py to one address, one for each thread that has a call under way.

    A thread of its own makes each connection, as resolving a name and TLS know no deadline.
    """

    def __init__(self, make: Callable[[], Any], clock: Callable[[], float]) -> None:
        self._make = make
        self._clock = clock
        self._condition = threading.Condition()
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._idle: list[Any] = []
        self._open = 0
        self._waiting = 0
        self._connecting = 0
        self._failures = 0
        self._error: BaseException | None = None
        self._closed = 0

    def send(self, call: Call) -> Any:
        """Sends a call and waits for the reply until its deadline."""
        if self._pid != os.getpid():
            # The connections belong to the parent process, and its locks may be held for ever.
            self._condition = threading.Condition()
            self._reset()
        packed = call.packed()
        try:
            connection = self._take(call.deadline)
        except Unavailable as error:
            return error
        except Exception as error:
            return error if is_answer(error) else Unavailable(reason_of(error))
        sock = connection.limited_socket
        usable = False
        try:
            sock.deadline = call.deadline
            connection.send_packed_command([packed], check_health=False)
            try:
                reply = connection.read_response()
            except Exception as error:
                if not is_answer(error):
                    raise
                reply = error
            usable = True
            return reply
        except Exception as error:
            reason = reason_of(error)
            return Unavailable(reason, broken=reason != "timeout")
        finally:
            sock.deadline = None
            self._give(connection, usable)

    def _take(self, deadline: float) -> Any:
        """An idle connection, or a new one. Raises the error of connecting, or Unavailable."""
        with self._condition:
            failures = self._failures
            self._waiting += 1
            try:
                while True:
                    while self._idle:
                        connection = self._idle.pop()
                        if not _ended(connection):
                            return connection
                        self._open -= 1
                        _close(connection)
                    if self._connecting < self._waiting and self._open < MAX_SYNC_CONNECTIONS:
                        self._connecting += 1
                        self._open += 1
                        try:
                            threading.Thread(target=self._connect, args=(self._closed,), daemon=True).start()
                        except BaseException:
                            self._connecting -= 1
                            self._open -= 1
                            raise
                    left = deadline - self._clock()
                    if left <= 0:
                        raise Unavailable("timeout")
                    self._condition.wait(left)
                    if self._failures != failures and self._error is not None:
                        raise self._error
            finally:
                self._waiting -= 1

    def _connect(self, closed: int) -> None:
        connection: Any = None
        error: BaseException | None = None
        try:
            connection = self._make()
            plain = connection._connect

            def limited() -> Any:
                connection.limited_socket = _Socket(plain(), self._clock)
                return connection.limited_socket

            connection._connect = limited
            connection.socket_timeout = CONNECT_TIMEOUT  # of the greeting; later the deadline of each call counts
            connection.connect()
            connection.socket_timeout = None
        except Exception as failed:
            error = failed
            _close(connection)
        with self._condition:
            if closed != self._closed:
                _close(connection)
                return
            self._connecting -= 1
            if error is None:
                self._idle.append(connection)
            else:
                self._open -= 1
                self._failures += 1
                self._error = error
            self._condition.notify_all()

    def _give(self, connection: Any, usable: bool) -> None:
        """Takes a connection back. One that is not usable is closed, as a late reply would be that of another call."""
        if not usable:
            _close(connection)
        with self._condition:
            if usable and connection.limited_socket is not None:
                self._idle.append(connection)
            else:
                self._open -= 1
            self._condition.notify()

    def close(self) -> None:
        """Closes all connections that are idle."""
        with self._condition:
            idle, closed = self._idle, self._closed + 1
            self._reset()
            self._closed = closed
        for connection in idle:
            _close(connection)


def _ended(connection: Any) -> bool:
    """Whether an idle connection has ended. Data that no call has asked for end it, too."""
    try:
        return bool(connection.can_read(0))
    except Exception:
        return True


def _close(connection: Any) -> None:
    if connection is not None:
        with contextlib.suppress(Exception):
            connection.disconnect()


def _maker(url: str | None, client: Any) -> Callable[[], Any]:
    """What makes connections to a URL, or as an application's client makes them."""
    if (url is None) == (client is None):
        raise ConfigurationError("a limiter needs either url or client")
    if client is None:
        assert url is not None
        pool: Any = ConnectionPool.from_url(url, **url_options(url))
    else:
        if not isinstance(client, Redis):
            raise ConfigurationError(f"client is a redis.Redis, not a {type(client).__name__}")
        pool = client.connection_pool

    return lambda: connection_of(pool)


class Limiter(BaseLimiter):
    """A limiter for programs without an event loop.

    url is that of the server; client is the application's redis.Redis instead, whose settings are used for connections
    of the limiter's own. See the README for the options. Raises ConfigurationError.

    Threads may share a limiter, and it may be created before a fork.
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

    def using(self, **options: Any) -> Limiter:
        """A limiter with other options on the same connections and the same breaker. limits excludes policy.

        It remembers denials and has a limiter in the process of its own: keep it rather than make one for each call.
        """
        child = Limiter(**changed(self._options, options), shared=self._shared, link=self._link)
        child._family = self._family
        self._family[child] = None
        return child

    def check(self, request: Any = None, *, key: str | None = None, cost: int | None = None, peek: bool = False) -> Result:
        """Decides a request, and charges it if it is allowed, unless peek asks only.

        key and cost replace what the options make of the request. The answer comes within the deadline. Raises
        KeyFault, ConfigurationError, ServerFault, and what the functions of the options raise.
        """
        return self._decide(self._begin(request, key, cost, peek=peek))

    def reserve(
        self, request: Any = None, units: int | None = None, *, key: str | None = None, ttl: float = 30.0
    ) -> SyncReservation:
        """Takes units before the cost of a request is known: with limiter.reserve(request, 800) as reservation.

        units and key replace what the options make of the request. ttl is the seconds, 1 to 86,400, after which the
        server gives the units back if the program has died. See Reservation. Raises ConfigurationError.
        """
        return SyncReservation(self, request, units, key, ttl)

    def _decide(self, step: Call | Result) -> Result:
        """Sends what is to be sent for a decision."""
        while isinstance(step, Call):
            step = self._end(step, self._send(step))
        if self._reads_policy and step.source == "server" and self._wants_policy():
            threading.Thread(target=self._refresh, daemon=True).start()
        return step

    def _send(self, call: Call) -> Any:
        try:
            return self._link.send(call)
        except BaseException:
            self._give_back(call.ticket)
            raise

    def _refresh(self) -> None:
        """Reads the limits of the policy again. Those from before stay if they cannot be had."""
        for what, call in self._start_calls():
            if what == "get":
                with contextlib.suppress(LimiterError):
                    self._started(what, self._link.send(call))

    def start(self) -> None:
        """Checks the configuration of this limiter, and of those made of it. A program calls it when it starts.

        Raises ConfigurationError if a policy or a permission is missing, or the password is wrong. A server that is
        unavailable is a line in the log.
        """
        for limiter in list(self._family):
            for what, call in limiter._start_calls():
                limiter._started(what, self._link.send(call))

    def close(self) -> None:
        """Closes the connections, also for the limiters made of this one."""
        self._link.close()

    def __enter__(self) -> Limiter:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
