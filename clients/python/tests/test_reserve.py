"""Reservations in virtual time, with the double of the server."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from redis.exceptions import ResponseError

from cellserver_client import ConfigurationError, ServerFault
from cellserver_client.core import Call
from cellserver_client.errors import Unavailable
from cellserver_client.reserve import MAX_RENEWED, _renewals
from cellserver_client.testing import FakeLimiter, FakeSyncLimiter


class Reserving:
    """A double of either kind. Each step of a reservation is called in the same way."""

    def __init__(self, kind: str, **options: Any) -> None:
        options = dict[str, Any](key=lambda request: "a", policy="api", limits="TB 1000 1000 60") | options
        self.loop = asyncio.new_event_loop() if kind == "asyncio" else None
        self.limiter: Any = (FakeLimiter if self.loop else FakeSyncLimiter)(**options)

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work) if self.loop else work

    def reserve(self, *words: Any, **options: Any) -> Any:
        if not self.loop:
            return self.limiter.reserve(*words, **options).__enter__()

        async def enter() -> Any:
            return await self.limiter.reserve(*words, **options).__aenter__()

        return self.run(enter())

    def left(self) -> int:
        remaining: int = self.run(self.limiter.check(cost=0)).remaining
        return remaining

    def use(self, actual: int | None = None, error: Exception | None = None, **options: Any) -> Any:
        """A reservation of 800 units, as an application writes it."""

        def body(reservation: Any) -> Any:
            if actual is not None:
                reservation.actual = actual
            if error is not None:
                raise error
            return reservation

        async def of_asyncio() -> Any:
            async with self.limiter.reserve(None, 800, **options) as reservation:
                return body(reservation)

        if self.loop:
            return self.run(of_asyncio())
        with self.limiter.reserve(None, 800, **options) as reservation:
            return body(reservation)


@pytest.fixture(params=["asyncio", "sync"])
def make(request: pytest.FixtureRequest) -> Any:
    made: list[Reserving] = []

    def of(**options: Any) -> Reserving:
        made.append(Reserving(request.param, **options))
        return made[-1]

    yield of
    for each in made:
        if each.loop:
            each.loop.close()


@pytest.mark.parametrize(("actual", "left"), [(None, 200), (300, 700), (0, 1000), (950, 50), (299.2, 700)])
def test_the_end_commits_the_actual_units(make: Any, actual: Any, left: int) -> None:
    double = make()
    assert double.use(actual)
    assert double.left() == left
    assert double.limiter.server.held == {}


def test_an_exception_cancels(make: Any) -> None:
    double = make()
    with pytest.raises(ValueError, match="of the application"):
        double.use(300, ValueError("of the application"))
    assert double.left() == 1000


def test_a_denial_holds_nothing_and_is_not_kept_in_memory(make: Any) -> None:
    double = make()
    double.use(800)
    for _ in range(2):
        denied = double.use(1)
        assert not denied
        assert (denied.result.source, denied.result.retry_after) == ("server", 36)
    assert double.left() == 200


def test_an_end_counts_once(make: Any) -> None:
    double = make()
    reservation = double.reserve(None, 800)
    reservation.actual = 100
    double.run(reservation.commit())
    double.run(reservation.cancel())
    double.run(reservation.commit())
    assert double.left() == 900


def test_units_of_a_caller_that_dies_come_back_after_the_time_to_live(make: Any) -> None:
    double = make(limits="TB 1000 1 60")
    double.reserve(None, 800, ttl=10)
    double.limiter.advance(9.9)
    assert double.left() == 200
    double.limiter.advance(0.1)
    assert double.left() == 1000


def test_renewals_hold_the_units_for_an_hour_at_most(make: Any) -> None:
    double = make(limits="TB 1000 1 60")
    reservation = double.reserve(None, 800, ttl=10)
    for _ in range(3):
        double.limiter.advance(9)
        double.run(reservation._renew())
        assert double.left() == 200
    double.limiter.advance(MAX_RENEWED)
    double.run(reservation._renew())
    assert double.left() == 1000


def test_an_end_takes_the_renewal_away(make: Any) -> None:
    double = make()
    reservation = double.reserve(None, 800)
    if double.loop:
        assert not reservation._timer.cancelled()
    else:
        assert reservation in _renewals._due
    double.run(reservation.commit())
    if double.loop:
        assert reservation._timer.cancelled()
    else:
        assert reservation not in _renewals._due


def test_the_options_make_units_and_key_of_a_request(make: Any) -> None:
    double = make(cost=lambda request: request["tokens"], key=lambda request: request["user"])
    reservation = double.reserve({"tokens": 4, "user": "ann"})
    assert reservation.actual == 4
    assert [tuple(call) for call in double.limiter.calls] == [("api", "ann", 4)]
    double.run(reservation.cancel())


def test_no_units_are_held_by_none(make: Any) -> None:
    double = make()
    reservation = double.reserve(None, 0)
    assert reservation
    assert double.limiter.server.held == {}
    double.run(reservation.commit())


def test_a_request_without_a_key_is_not_limited(make: Any) -> None:
    double = make(key=lambda request: None)
    assert double.use().result.source == "none"


@pytest.mark.parametrize("mode", ["allow", "deny"])
def test_a_server_that_is_away_is_the_business_of_on_unavailable(make: Any, mode: str) -> None:
    double = make(on_unavailable=mode)
    double.limiter.go_away()
    assert bool(double.use()) is (mode == "allow")
    double.limiter.come_back()
    assert double.left() == 1000


def test_a_server_that_goes_away_meanwhile_is_one_line_in_the_log(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    double = make(limits="TB 1000 1 60")
    reservation = double.reserve(None, 800, ttl=10)
    double.limiter.go_away("refused")
    with caplog.at_level(logging.WARNING, "cellserver_client"):
        double.run(reservation.commit())
    assert "command=RL.COMMIT reason=refused" in caplog.text
    double.limiter.come_back()
    double.limiter.advance(10)
    assert double.left() == 1000


def test_a_breaker_that_is_open_costs_an_end_no_call(make: Any) -> None:
    double = make()
    reservation = double.reserve(None, 800)
    double.limiter.go_away()
    for _ in range(5):
        double.run(double.limiter.check())
    before = double.limiter.clock.seconds()
    double.run(reservation.commit())
    assert double.limiter.clock.seconds() == before


@pytest.mark.parametrize("options", [{"ttl": 0.5}, {"ttl": 86401}, {"units": -1}])
def test_wrong_arguments_are_errors_at_once(make: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        make().limiter.reserve(**options)


class Scripted:
    """A link whose outcomes a test writes."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.words: list[list[str]] = []

    def send(self, call: Call) -> Any:
        self.words.append(call.words)
        return self.outcomes.pop(0)


PASSED = [[0, 1000, 200, -1, 48000], [[0, 1000, 200, -1, 48000]]]


def scripted(*outcomes: Any, **options: Any) -> tuple[FakeSyncLimiter, Scripted]:
    limiter = FakeSyncLimiter(**dict[str, Any](policy="api", key=lambda request: "a", id=lambda request: "r1") | options)
    link = Scripted(*outcomes)
    limiter._link = link  # type: ignore[assignment]
    return limiter, link


def test_both_calls_are_sent_again_if_their_connection_ends() -> None:
    broken = Unavailable("connection", broken=True)
    limiter, link = scripted(broken, PASSED, broken, 1)
    with limiter.reserve(None, 800) as reservation:
        reservation.actual = 300
    assert (
        link.words
        == [["RL.USE", "api", "a", "800", "RESERVE", "r1", "30000", "MS", "WITHDETAILS"]] * 2
        + [["RL.COMMIT", "a", "r1", "300", "POLICY", "api"]] * 2
    )


@pytest.mark.parametrize("outcome", [-1, "OK", ResponseError("NOPERM no"), ResponseError("wrong"), Unavailable("timeout")])
def test_an_end_raises_nothing(outcome: Any) -> None:
    limiter, link = scripted(PASSED, outcome, id=None)
    with limiter.reserve(None, 800):
        pass
    assert link.outcomes == []


def test_a_server_without_reservations_is_a_fault_of_the_program() -> None:
    limiter, link = scripted(ResponseError("syntax error near 'RESERVE'"))
    with pytest.raises(ServerFault), limiter.reserve(None, 800):
        raise AssertionError("nothing is reserved")
    assert len(link.words) == 1


def test_a_caller_that_is_cancelled_gives_its_units_back() -> None:
    limiter = FakeLimiter(policy="api", limits="TB 1000 1 60", key=lambda request: "a")

    async def run() -> None:
        entered = asyncio.Event()

        async def work() -> None:
            async with limiter.reserve(None, 800):
                entered.set()
                await asyncio.sleep(3600)

        task = asyncio.create_task(work())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await limiter.check(cost=0)).remaining == 1000

    asyncio.run(run())
