"""Both limiters against the real program: the table of worked examples, outages, and counts that are exact.

Bounds on times have room for a machine that is busy: what a hung server would cost is far above them.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.asyncio

from cellserver_client import BreakerOptions, ConfigurationError, Result, aio, respond, sync
from real.servers import Proxy, Server, free_port

SLACK = 3.0
"""Seconds by which a busy machine may be late."""

NEVER = BreakerOptions(in_row=10**6, window=10**6)
"""A breaker that does not open."""


def constant(key: str) -> Callable[[Any], str]:
    return lambda request: key


class Either:
    """A limiter of either kind behind one face. The asyncio one has a loop of its own."""

    def __init__(self, kind: str, url: str | None, **options: Any) -> None:
        options = dict[str, Any](policy="api", key=constant("a"), on_unavailable="allow", deadline=1.0) | options
        self._loop = asyncio.new_event_loop() if kind == "asyncio" else None
        self.limiter: Any = (aio if self._loop else sync).Limiter(url, **options)

    def run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work) if self._loop else work

    def start(self) -> None:
        self.run(self.limiter.start())

    def check(self, **options: Any) -> Result:
        result: Result = self.run(self.limiter.check(**options))
        return result

    def answer(self, **options: Any) -> tuple[int, dict[str, str]]:
        status, fields, _ = respond(self.check(**options), "draft")
        return status, dict(fields)

    def close(self) -> None:
        if self._loop:
            self.run(self.limiter.aclose())
            self._loop.close()
        else:
            self.limiter.close()


@pytest.fixture(params=["asyncio", "sync"])
def limiter(request: pytest.FixtureRequest) -> Any:
    made: list[Either] = []

    def make(url: str | None, **options: Any) -> Either:
        made.append(Either(request.param, url, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_the_worked_examples(server: Server, limiter: Any) -> None:
    lim = limiter(server.url)
    lim.start()
    assert lim.answer() == (0, {"RateLimit-Policy": '"api";q=2', "RateLimit": '"api";r=1;t=60'})
    assert lim.answer()[0] == 0
    status, fields = lim.answer()
    assert status == 429
    assert 55 <= int(fields["Retry-After"]) <= 60
    assert lim.check().source == "cache"
    status, fields = lim.answer(cost=3)
    assert (status, "Retry-After" in fields) == (429, False)
    assert lim.check(cost=3).never


def test_a_misspelt_policy_is_an_error_at_the_start_and_at_a_call(server: Server, limiter: Any) -> None:
    with pytest.raises(ConfigurationError, match="NOPOLICY"):
        limiter(server.url, policy="apii").start()
    with pytest.raises(ConfigurationError, match="NOPOLICY"):
        limiter(server.url, policy="apii").check()


def test_a_password_that_is_wrong_is_an_error(server: Server, limiter: Any) -> None:
    server.command("CONFIG", "SET", "requirepass", "secret")
    for url in (server.url, server.url.replace("//", "//:wrong@")):
        with pytest.raises(ConfigurationError, match="NOAUTH"):
            limiter(url).start()
    limiter(server.url.replace("//", "//:secret@")).start()


@pytest.mark.parametrize("mode", ["allow", "deny", "local"])
def test_a_server_that_hangs_costs_a_deadline_and_then_nothing(server: Server, limiter: Any, mode: str) -> None:
    lim = limiter(server.url, on_unavailable=mode, instances=2 if mode == "local" else None, deadline=0.05)
    if mode == "local":
        lim.start()
    while lim.check(key="warm").source != "server":
        time.sleep(0.01)
    server.hang()
    results, times = [], []
    for i in range(6):
        assert lim.limiter._shared.breaker.state == ("open" if i == 5 else "closed")
        begun = time.monotonic()
        results.append(lim.check())
        times.append(time.monotonic() - begun)
    assert max(times) < 0.05 + SLACK
    assert min(times[:5]) >= 0.045
    want = {"allow": [0] * 6, "deny": [503] * 6, "local": [0] + [429] * 5}[mode]
    assert [respond(result, "draft")[0] for result in results] == want
    assert not any("RateLimit" in dict(respond(result, "draft")[1]) for result in results)
    server.signal(signal.SIGCONT)
    back = time.monotonic()
    while lim.check(key="back").source != "server":
        assert time.monotonic() - back < 1.5 + SLACK
        time.sleep(0.01)


def test_a_restart_is_noticed_within_the_pause_of_the_breaker(server: Server, limiter: Any) -> None:
    lim = limiter(server.url)
    assert lim.check().source == "server"
    server.kill()
    for _ in range(6):
        assert lim.check().source == "unavailable"
    server.start()
    server.policy("api", "TB 2 1 60")
    back = time.monotonic()
    while lim.check().source != "server":
        assert time.monotonic() - back < 1.5 + SLACK
        time.sleep(0.01)


def test_a_connection_that_a_restart_has_ended_costs_no_call(server: Server, limiter: Any) -> None:
    lim = limiter(server.url)
    lim.check()
    server.kill()
    server.start()
    server.policy("api", "TB 2 1 60")
    if lim._loop:
        lim.run(asyncio.sleep(0.05))
    assert lim.check().source == "server"


def test_a_port_without_a_server_is_refused_at_once(limiter: Any) -> None:
    lim = limiter(f"redis://127.0.0.1:{free_port()}", deadline=1.0)
    lim.start()
    begun = time.monotonic()
    assert lim.check().source == "unavailable"
    assert time.monotonic() - begun < 0.9


def test_each_answer_belongs_to_its_call_behind_a_proxy_that_drops_replies(server: Server, limiter: Any) -> None:
    server.policy("many", "TB 100000 1 60")
    proxy = Proxy(server.port, 0.1)
    lim = limiter(proxy.url, policy="many", breaker=NEVER)
    sources: Counter[str] = Counter()
    for i in range(400):
        result = lim.check(key=f"k{i}", cost=i + 1)
        sources[result.source] += 1
        if result.source == "server":
            assert result.remaining == 100000 - i - 1
    proxy.close()
    assert sources["server"] > 250
    assert sources["unavailable"] > 5


def test_calls_with_an_id_count_once_behind_a_proxy_that_drops_replies(server: Server, limiter: Any) -> None:
    server.policy("many", "TB 100000 1 600")
    proxy = Proxy(server.port, 0.1)
    lim = limiter(proxy.url, policy="many", breaker=NEVER, retry=True, deadline=1.0)
    counted = sum(lim.check().source == "server" for _ in range(200))
    proxy.close()
    left = server.command("RL.USE", "many", "a", "0")
    assert isinstance(left, list)
    assert counted <= 100000 - left[2] <= 200
    assert counted > 140  # the greetings of connections are dropped, too


def test_the_limits_of_the_policy_are_read_for_local(server: Server, limiter: Any) -> None:
    server.policy("two", "TB 40 1 60 SW 20 3600 FIXED")
    lim = limiter(server.url, policy="two", on_unavailable="local", instances=4)
    lim.start()
    passed = lim.check()
    assert [clause.window_ms for clause in passed.policies] == [0, 3600_000]
    server.kill()
    assert [lim.check(cost=5).allowed for _ in range(2)] == [True, False]


def test_inline_limits_and_the_clients_of_an_application(server: Server, limiter: Any) -> None:
    lim = limiter(server.url, policy="own", limits=["TB 5 1 60", "SW 3 1h FIXED"])
    lim.start()
    results = [lim.check() for _ in range(4)]
    assert [r.allowed for r in results] == [True, True, True, False]
    assert [len(r.policies) for r in results[:3]] == [2, 2, 2]
    kind: Any = redis.asyncio.Redis if lim._loop else redis.Redis
    own = limiter(
        None, client=kind(host="127.0.0.1", port=server.port, decode_responses=True), policy="other", limits="SW 1 1h"
    )
    assert [own.check().allowed for _ in range(2)] == [True, False]


def judge_exactness(results: list[Result], limit: int) -> None:
    """A call without an answer may have been charged; each other one that was charged has passed."""
    passed = sum(result.allowed for result in results)
    unknown = sum(result.source == "unavailable" for result in results)
    assert limit - unknown <= passed <= limit


def test_two_instances_of_64_callers_admit_exactly_the_limit(server: Server) -> None:
    server.policy("exact", "TB 500 1 3600")

    def instance(out: list[Result]) -> None:
        async def caller(limiter: aio.Limiter) -> None:
            for _ in range(10):
                out.append(await limiter.check())

        async def run() -> None:
            limiter = aio.Limiter(
                server.url, policy="exact", key=constant("one"), on_unavailable="deny", deadline=1.0, denial_cache=0
            )
            async with limiter:
                await asyncio.gather(*(caller(limiter) for _ in range(64)))

        asyncio.run(run())

    results: list[Result] = []
    threads = [threading.Thread(target=instance, args=(results,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 1280
    judge_exactness(results, 500)


def test_64_threads_admit_exactly_the_limit(server: Server) -> None:
    server.policy("exact", "TB 300 1 3600")
    limiter = sync.Limiter(server.url, policy="exact", key=constant("one"), on_unavailable="deny", deadline=1.0, denial_cache=0)
    results: list[Result] = []

    def caller() -> None:
        results.extend(limiter.check() for _ in range(10))

    with limiter:
        threads = [threading.Thread(target=caller) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    judge_exactness(results, 300)


def test_the_loop_goes_on_while_the_server_hangs(server: Server) -> None:
    """Of the turns of the loop, at least 80 % are on time: the rest may be the machine's."""

    async def run() -> list[float]:
        limiter = aio.Limiter(server.url, policy="api", key=constant("a"), on_unavailable="allow", breaker=NEVER)
        async with limiter:
            await limiter.check()
            server.hang()
            lags: list[float] = []
            done = asyncio.Event()

            async def ticking() -> None:
                while not done.is_set():
                    begun = time.monotonic()
                    await asyncio.sleep(0.001)
                    lags.append(time.monotonic() - begun - 0.001)

            ticker = asyncio.create_task(ticking())
            for _ in range(10):
                results = await asyncio.gather(*(limiter.check() for _ in range(32)))
                assert {result.source for result in results} == {"unavailable"}
            done.set()
            await ticker
            return sorted(lags)

    lags = asyncio.run(run())
    server.signal(signal.SIGCONT)
    assert lags[int(len(lags) * 0.8)] <= 0.010


def test_nothing_is_left_behind_after_an_outage(server: Server) -> None:
    async def run() -> None:
        limiter = aio.Limiter(server.url, policy="api", key=constant("a"), on_unavailable="allow")
        async with limiter:
            await limiter.check()
            tasks = len(asyncio.all_tasks())
            server.hang()
            await asyncio.gather(*(limiter.check() for _ in range(100)))
            server.signal(signal.SIGCONT)
            while (await limiter.check()).source != "server":
                await asyncio.sleep(0.02)
            deadline = time.monotonic() + 5
            while len(asyncio.all_tasks()) > tasks:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)

    asyncio.run(run())
