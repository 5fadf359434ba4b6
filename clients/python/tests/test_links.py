"""The connections of both limiters, with doubles in the place of connections and no port."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
import redis
import redis.asyncio

from cellserver_client import aio, sync
from cellserver_client.core import Call
from cellserver_client.errors import Unavailable
from cellserver_client.wire import Target


def call(seconds: float = 5.0, words: list[str] | None = None) -> Call:
    now = time.monotonic()
    return Call(Target("api"), words or ["RL.USE", "api", "a", "1"], "a", 1, "", now, now + seconds)


def test_connections_of_a_sync_limiter_are_not_counted_in_the_pool_of_the_application() -> None:
    client = redis.Redis(host="127.0.0.1", port=1, max_connections=2)
    make = sync._maker(None, client)
    made = [make() for _ in range(5)]
    assert {type(connection) for connection in made} == {client.connection_pool.connection_class}
    client.connection_pool.make_connection()


def test_a_connection_that_cannot_be_made_holds_no_place() -> None:
    def fail() -> Any:
        raise RuntimeError("no connection")

    link = sync.RedisLink(fail, time.monotonic)
    for _ in range(3):
        outcome = link.send(call())
        assert isinstance(outcome, Unavailable)
        assert outcome.reason == "connection"
    assert (link._open, link._connecting) == (0, 0)

    async def run() -> None:
        link = aio.RedisLink(fail, time.monotonic)
        for _ in range(3):
            outcome = await link.send(call())
            assert isinstance(outcome, Unavailable)
            assert outcome.reason == "connection"
        assert not link._connecting

    asyncio.run(run())


def test_a_thread_that_cannot_be_started_holds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    link = sync.RedisLink(lambda: None, time.monotonic)
    assert isinstance(link.send(call()), Unavailable)
    assert (link._open, link._connecting) == (0, 0)


class Peer:
    """A connection that packs as redis-py does and answers each command with one that has passed."""

    def __init__(self, **options: Any) -> None:
        kind: Any = redis.Connection
        self._packer = kind(**options)
        self.sent: list[bytes] = []
        self.limited_socket: Any = None

    def pack_command(self, *words: Any) -> Any:
        return self._packer.pack_command(*words)

    def can_read(self, timeout: float) -> bool:
        return False

    def _connect(self) -> Any:
        return None

    def connect(self) -> None:
        self._connect()

    def send_packed_command(self, packed: Any, check_health: bool) -> None:
        self.sent.append(b"".join(packed))

    def read_response(self) -> Any:
        return [[0, 2, 1, -1, 60000], [[0, 2, 1, -1, 60000]]]


def test_words_are_sent_in_utf_8_whatever_the_encoding_of_a_client_is() -> None:
    peer = Peer(encoding="latin-1")
    link = sync.RedisLink(lambda: peer, time.monotonic)
    assert isinstance(link.send(call(words=["RL.USE", "api", "\u0142", "1"])), list)
    assert "\u0142".encode() in peer.sent[0]


def test_words_that_cannot_be_encoded_are_a_fault_and_no_outage() -> None:
    bad = ["RL.USE", "api", "\ud800", "1"]
    with pytest.raises(UnicodeEncodeError):
        sync.RedisLink(lambda: None, time.monotonic).send(call(words=bad))
    with pytest.raises(UnicodeEncodeError):
        asyncio.run(aio.RedisLink(lambda: None, time.monotonic).send(call(words=bad)))  # type: ignore[arg-type, return-value]


class Slow:
    """A connection for asyncio whose replies a test gives."""

    def __init__(self) -> None:
        self.is_connected = True
        self._reader = asyncio.StreamReader()
        self.replies: asyncio.Queue[Any] = asyncio.Queue()
        self.sent = 0

    async def connect(self) -> None:
        pass

    async def disconnect(self, nowait: bool = False) -> None:
        self.is_connected = False

    def pack_command(self, *words: Any) -> Any:
        return [words]

    def pack_commands(self, commands: Any) -> Any:
        return commands

    async def send_packed_command(self, packed: Any, check_health: bool) -> None:
        self.sent += 1

    async def read_response(self) -> Any:
        return await self.replies.get()


class Flights:
    """A link for asyncio on a slow connection. A test says when a deadline is over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connection = Slow()
        made: Any = self.connection
        self.link = aio.RedisLink(lambda: made, time.monotonic)
        self._turns: dict[float, Any] = {}
        plain = aio._Turn

        def turn(deadline: float) -> Any:
            made = plain(deadline)
            self._turns[deadline] = made
            return made

        monkeypatch.setattr(aio, "_Turn", turn)

    async def begin(self, *seconds: float) -> list[asyncio.Task[Any]]:
        """Sends calls with deadlines together. None is over by itself before the test is."""
        tasks = [asyncio.create_task(self.link.send(call(each))) for each in seconds]
        while not self.connection.sent:
            await asyncio.sleep(0)
        return tasks

    def over(self, i: int) -> None:
        """Ends the deadline that is in place i from the earliest."""
        self.link._over(self._turns[sorted(self._turns)[i]], 0)


@pytest.mark.parametrize("order", [(600.0, 900.0), (900.0, 600.0)])
def test_a_short_deadline_does_not_end_calls_with_longer_ones(
    monkeypatch: pytest.MonkeyPatch, order: tuple[float, float]
) -> None:
    async def run() -> None:
        flights = Flights(monkeypatch)
        slow = flights.connection
        tasks = await flights.begin(*order)
        flights.over(0)
        assert isinstance(await tasks[order.index(600.0)], Unavailable)
        for seconds in order:
            slow.replies.put_nowait(seconds)
        assert await tasks[order.index(900.0)] == 900.0
        slow.replies.put_nowait("third")
        assert await flights.link.send(call(900.0)) == "third"
        assert slow.is_connected
        assert slow.sent == 2

    asyncio.run(run())


@pytest.mark.parametrize("order", [(600.0, 900.0), (900.0, 600.0)])
@pytest.mark.parametrize("answered", [0, 1])
def test_a_connection_is_closed_when_all_deadlines_are_over(
    monkeypatch: pytest.MonkeyPatch, order: tuple[float, float], answered: int
) -> None:
    async def run() -> None:
        flights = Flights(monkeypatch)
        tasks = await flights.begin(*order)
        for _ in range(answered):
            flights.connection.replies.put_nowait("first")
            assert await tasks[0] == "first"
        flights.over(0)
        flights.over(1)
        assert isinstance(await tasks[1], Unavailable)
        while flights.link._tasks:
            await asyncio.sleep(0)
        assert not flights.connection.is_connected
        assert flights.link._busy == 0

    asyncio.run(run())
