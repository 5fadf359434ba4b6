"""The limiters in virtual time, with the double of the server."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import signal
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from redis.asyncio.connection import Connection
from redis.exceptions import ResponseError

from cellserver_client import ConfigurationError, KeyFault, ServerFault, respond
from cellserver_client.clauses import parse
from cellserver_client.core import Call
from cellserver_client.errors import Unavailable
from cellserver_client.keys import hashed
from cellserver_client.local import LocalLimiter
from cellserver_client.testing import Clock, FakeLimiter, FakeSyncLimiter


def by(key: str) -> Callable[[Any], str]:
    return lambda request: key


def check(limiter: FakeLimiter, **options: Any) -> Any:
    return asyncio.run(limiter.check(**options))


@pytest.fixture(params=["asyncio", "sync"])
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes a double of either kind, whose check is called in the same way."""

    def made(**options: Any) -> Any:
        options = dict[str, Any](key=by("a"), policy="api", limits="TB 2 1 60") | options
        if request.param == "sync":
            return FakeSyncLimiter(**options)
        limiter = FakeLimiter(**options)
        plain = limiter.check
        limiter.check = lambda *a, **o: asyncio.run(plain(*a, **o))  # type: ignore[method-assign,assignment]
        return limiter

    return made


def test_the_first_calls_pass_and_then_one_is_denied(make: Callable[..., Any]) -> None:
    limiter = make()
    assert limiter.check().remaining == 1
    limiter.advance(1)
    second = limiter.check()
    assert (second.allowed, second.remaining, second.reset_after) == (True, 0, 119)
    limiter.advance(1)
    denied = limiter.check()
    assert (denied.allowed, denied.retry_after, denied.source) == (False, 58, "server")
    limiter.advance(58)
    assert limiter.check().allowed


def test_a_denial_is_repeated_from_memory_for_a_second(make: Callable[..., Any]) -> None:
    limiter = make()
    for _ in range(3):
        limiter.check()
    asked = len(limiter.calls)
    limiter.advance(0.1)
    again = limiter.check()
    assert (again.source, again.allowed) == ("cache", False)
    assert again.retry_after == pytest.approx(59.9)
    assert len(limiter.calls) == asked
    limiter.advance(0.9)
    assert limiter.check().source == "server"


@pytest.mark.parametrize("options", [{"denial_cache": 0}, {"ban": True}])
def test_no_denial_is_kept_if_that_is_off(make: Callable[..., Any], options: dict[str, Any]) -> None:
    limiter = make(**options)
    assert [limiter.check().source for _ in range(4)] == ["server"] * 4


def test_a_peek_charges_nothing_and_is_not_kept(make: Callable[..., Any]) -> None:
    for options in ({}, {"on_unavailable": "local", "instances": 1}):
        limiter = make(**options)
        if options:
            limiter.go_away("refused")
        assert limiter.check(peek=True, cost=2).remaining == 2
        limiter.check()
        for _ in range(2):
            denied = limiter.check(peek=True, cost=2)
            assert (denied.allowed, denied.remaining, denied.retry_after) == (False, 1, 60)
            assert denied.source == ("local" if options else "server")
        assert limiter.check().allowed


def test_a_request_without_a_key_is_not_limited(make: Callable[..., Any]) -> None:
    limiter = make(key=lambda request: None)
    assert limiter.check().source == "none"
    assert limiter.calls == []


def test_a_cost_above_the_limit_never_passes(make: Callable[..., Any]) -> None:
    result = make(cost=3).check()
    assert (result.allowed, result.never, result.retry_after) == (False, True, None)
    status, fields, body = respond(result, "draft")
    assert status == 429
    assert "Retry-After" not in dict(fields)
    assert b"exceeds the limit of 2" in body


def test_cost_is_a_function_of_the_request(make: Callable[..., Any]) -> None:
    limiter = make(limits="TB 10 1 1", cost=lambda request: request["tokens"])
    assert limiter.check({"tokens": 4}).remaining == 6
    assert limiter.check({"tokens": 4}, cost=1).remaining == 5
    assert [call.cost for call in limiter.calls] == [4, 1]


@pytest.mark.parametrize("cost", [-1, 1.5, "1", None])
def test_a_cost_of_a_function_gives_no_units_back(make: Callable[..., Any], cost: Any) -> None:
    limiter = make(cost=lambda request: cost)
    with pytest.raises(ConfigurationError, match="0 or more"):
        limiter.check()
    assert limiter.calls == []


@pytest.mark.parametrize("limits", ["TB 2 1 60", ["TB 2 1 60", "CC 2 60"]])
def test_a_text_that_utf_8_does_not_have_is_limited_as_any_other(make: Callable[..., Any], limits: Any) -> None:
    limiter = make(key=lambda request: "\ud800", id=lambda request: "\ud801", member=lambda request: "\ud802", limits=limits)
    assert [limiter.check().allowed for _ in range(3)] == [True, True, False]
    assert {call.key for call in limiter.calls} == {hashed("\ud800")}
    assert limiter.check(key="b\ud800").source == "server"
    begun = limiter._begin(None, "c", None)
    begun.words.append("\u00e4\U0001f600")
    assert begun.packed() == b"".join(Connection(encoding="utf-8").pack_command(*begun.words))


def test_a_key_of_a_function_is_bounded(make: Callable[..., Any]) -> None:
    limiter = make(key=lambda request: "k" * 129)
    limiter.check()
    assert [call.key for call in limiter.calls] == [hashed("k" * 129)]


@pytest.mark.parametrize("what", ["key", "member", "id"])
def test_what_is_no_text_is_a_fault_that_keeps_no_probe(make: Callable[..., Any], what: str) -> None:
    wrong = False
    limiter = make(**{what: lambda request: uuid.UUID(int=1) if wrong else "a", "limits": "TB 100 1 60"})
    limiter.go_away("refused")
    for _ in range(5):
        limiter.check()
    limiter.advance(2)
    limiter.come_back()
    wrong = True
    for _ in range(10):
        with pytest.raises(KeyFault, match=f"{what} is a text, not a UUID"):
            limiter.check()
    wrong = False
    assert limiter.check().source == "server"


def test_an_id_that_raises_keeps_no_probe(make: Callable[..., Any]) -> None:
    def id(request: Any) -> str:
        if request == "wrong":
            raise ValueError("of the application")
        return ""

    limiter = make(id=id)
    limiter.go_away("refused")
    for _ in range(5):
        limiter.check()
    limiter.advance(2)
    limiter.come_back()
    with pytest.raises(ValueError, match="of the application"):
        limiter.check("wrong")
    assert limiter.check().source == "server"


@pytest.mark.parametrize(("mode", "status"), [("allow", 0), ("deny", 503)])
def test_a_server_that_is_away_is_the_business_of_on_unavailable(make: Callable[..., Any], mode: str, status: int) -> None:
    limiter = make(on_unavailable=mode)
    limiter.go_away()
    result = limiter.check()
    assert result.source == "unavailable"
    got, fields, _ = respond(result, "draft")
    assert got == status
    assert dict(fields) == ({"Retry-After": "1"} if status else {})


def test_the_limiter_in_the_process_has_the_share_of_an_instance(make: Callable[..., Any]) -> None:
    limiter = make(limits="TB 4 4 60", on_unavailable="local", instances=2)
    limiter.go_away("refused")
    results = [limiter.check() for _ in range(3)]
    assert [r.allowed for r in results] == [True, True, False]
    assert {r.source for r in results} == {"local"}
    status, fields, _ = respond(results[2], "draft")
    assert (status, fields) == (429, [("Retry-After", "30")])
    assert respond(results[0], "draft") == (0, [], b"")


def test_the_limiter_in_the_process_begins_anew_a_minute_after_an_outage(make: Callable[..., Any]) -> None:
    limiter = make(limits="TB 2 1 600", on_unavailable="local", instances=2)
    limiter.go_away("refused")
    assert [limiter.check().allowed for _ in range(2)] == [True, False]
    limiter.come_back()
    limiter.advance(59)
    assert limiter.check(key="b").source == "server"
    limiter.go_away("refused")
    assert not limiter.check().allowed  # a lost reply among others has no unused limit
    limiter.come_back()
    limiter.advance(61)
    assert limiter.check(key="b").source == "server"
    limiter.go_away("refused")
    assert limiter.check().allowed


def test_the_breaker_opens_after_five_failures_and_closes_with_a_probe(make: Callable[..., Any]) -> None:
    limiter = make(limits="TB 100 1 60")
    limiter.go_away()
    before = limiter.clock.seconds()
    for _ in range(5):
        limiter.check()
    assert limiter.clock.seconds() - before == pytest.approx(0.25)  # five deadlines
    limiter.check()
    assert limiter.clock.seconds() - before == pytest.approx(0.25)
    limiter.come_back()
    assert limiter.check().source == "unavailable"
    limiter.advance(1)
    assert limiter.check().source == "server"
    assert limiter.check().source == "server"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads of other tests
def test_a_fork_while_a_thread_decides_leaves_the_child_with_a_limiter() -> None:
    limiter = FakeSyncLimiter(policy="api", limits="TB 2 1 60", key=by("a"))
    limiter.go_away("refused")
    for _ in range(5):
        limiter.check()
    limiter.advance(2)
    limiter.come_back()
    assert isinstance(limiter._begin(None, None, None), Call)  # the probe, which only the parent ends
    with limiter._shared.lock:
        child = os.fork()
        if child == 0:
            signal.alarm(30)  # the child ends, whatever happens to it
            try:
                os._exit(0 if limiter.check().source == "server" else 1)
            finally:
                os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert limiter.check().source == "unavailable"  # in the parent the probe is still under way


def test_limiters_made_of_one_are_freed(make: Callable[..., Any]) -> None:
    limiter = make()
    kept = limiter.using(policy="kept", limits="TB 1 1 1")
    for i in range(10):
        limiter.using(policy=f"p{i}", limits="TB 1 1 1")
    gc.collect()
    assert list(limiter._family) == [limiter, kept]
    assert list(kept._family) == [limiter, kept]


def test_inline_limits_without_a_name_are_those_of_the_other_packages(make: Callable[..., Any]) -> None:
    limiter = make(policy="")
    assert limiter.check().policy == "limit"
    assert limiter._begin(None, "a", None).words[1] == "limit:a"


def test_a_rate_of_over_a_unit_a_nanosecond_is_one_a_nanosecond() -> None:
    local = LocalLimiter(parse("TB 5 2000000000 1"), Clock(1000).ns)
    assert [local.check("a")[0].denies for _ in range(6)] == [False] * 5 + [True]


def test_limiters_made_of_one_share_its_breaker(make: Callable[..., Any]) -> None:
    limiter = make(limits="TB 100 1 60")
    other = limiter.using(limits="TB 9 1 1", policy="other")
    limiter.go_away("refused")
    for _ in range(5):
        limiter.check()
    begun = other._begin(None, None, None)
    assert not isinstance(begun, Call)
    assert begun.source == "unavailable"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "", "limits": ()}, "policy"),
        ({"policy": 'a"b'}, "policy is"),
        ({"policy": "a\n"}, "policy is"),
        ({"policy": "a:b", "limits": ()}, "policy is"),
        ({"policy": "\u00e4"}, "policy is"),
        ({"policy": "n" * 65}, "policy is"),
        ({"limits": "XX 1 2"}, "TB"),
        ({"limits": "TB 1 2"}, "numbers"),
        ({"limits": "TB x 1 1"}, "whole number"),
        ({"limits": "SW 1 0"}, "time"),
        ({"on_unavailable": "maybe"}, "on_unavailable"),
        ({"deadline": 0.001}, "deadline"),
        ({"deadline": 2}, "deadline"),
        ({"headers": "old"}, "headers"),
        ({"on_unavailable": "local"}, "instances"),
        ({"on_unavailable": "local", "instances": 0}, "instances"),
        ({"limits": "CC 5 30"}, "member"),
        ({"keep": "20%"}, "inline"),
    ],
)
def test_wrong_options_are_errors_at_once(make: Callable[..., Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make(**options)


def test_on_unavailable_has_no_default() -> None:
    from cellserver_client import aio, sync

    for limiter in (aio.Limiter, sync.Limiter):
        with pytest.raises(TypeError, match="on_unavailable"):
            limiter("redis://localhost", policy="api", key=by("a"))  # type: ignore[call-arg]


def test_the_start_raises_for_a_policy_that_is_missing() -> None:
    with pytest.raises(ConfigurationError, match="NOPOLICY"):
        asyncio.run(FakeLimiter(policy="apii", policies={"api": "TB 1 1 1"}, key=by("a")).start())
    with pytest.raises(ConfigurationError, match="NOPOLICY"):
        FakeSyncLimiter(policy="apii", policies={"api": "TB 1 1 1"}, key=by("a")).start()


def test_a_policy_that_is_missing_is_an_error_also_without_a_start() -> None:
    limiter = FakeLimiter(policy="apii", key=by("a"))
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="NOPOLICY"):
            check(limiter)


def test_a_policy_that_is_deleted_later_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    limiter = FakeLimiter(policy="api", policies={"api": "TB 9 1 1"}, key=by("a"))
    assert check(limiter).source == "server"
    limiter.server._tables.clear()
    with caplog.at_level(logging.ERROR, "cellserver_client"):
        assert [check(limiter).source for _ in range(30)] == ["unavailable"] * 30
    assert len(caplog.records) == 1
    assert "NOPOLICY" in caplog.text


def test_local_reads_the_limits_of_its_policy_at_the_start() -> None:
    limiter = FakeLimiter(policy="api", policies={"api": "TB 4 1 60"}, key=by("a"), on_unavailable="local", instances=2)
    asyncio.run(limiter.start())
    limiter.go_away("refused")
    assert [check(limiter).allowed for _ in range(3)] == [True, True, False]


def test_local_without_limits_is_an_error_at_the_start() -> None:
    limiter = FakeLimiter(policy="api", policies={"api": "TB 4 1 60"}, key=by("a"), on_unavailable="local", instances=2)
    limiter.go_away("refused")
    with pytest.raises(ConfigurationError, match="fallback"):
        asyncio.run(limiter.start())


def test_local_reads_the_limits_again_after_a_minute() -> None:
    limiter = FakeLimiter(policy="api", policies={"api": "TB 4 1 60"}, key=by("a"), on_unavailable="local", instances=2)

    async def run() -> None:
        await limiter.start()
        limiter.server._texts["api"] = "TB 40 1 60"
        limiter.advance(60)
        await limiter.check()
        await asyncio.gather(*limiter._background)

    asyncio.run(run())
    limiter.go_away("refused")
    assert check(limiter).limit == 20


class Scripted:
    """A link whose outcomes a test writes."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.words: list[list[str]] = []

    async def send(self, call: Call) -> Any:
        self.words.append(call.words)
        return self.outcomes.pop(0)

    async def aclose(self) -> None:
        pass


PASSED = [[0, 2, 1, -1, 60000], [[0, 2, 1, -1, 60000]]]


def scripted(*outcomes: Any, **options: Any) -> tuple[FakeLimiter, Scripted]:
    limiter = FakeLimiter(**dict[str, Any](policy="api", key=by("a")) | options)
    link = Scripted(*outcomes)
    limiter._link = link
    return limiter, link


def test_a_call_with_an_id_is_tried_again_once_if_its_connection_ends() -> None:
    limiter, link = scripted(Unavailable("connection", broken=True), PASSED, id=lambda request: "i1")
    assert check(limiter).source == "server"
    assert link.words == [["RL.USE", "api", "a", "1", "ID", "i1", "MS", "WITHDETAILS"]] * 2
    limiter, link = scripted(*[Unavailable("connection", broken=True)] * 2, retry=True)
    assert check(limiter).source == "unavailable"
    assert len(link.words) == 2


def test_a_call_is_not_tried_again_without_an_id_or_after_a_timeout() -> None:
    for broken, options in [(True, {}), (False, {"retry": True})]:
        limiter, link = scripted(Unavailable("connection", broken=broken), **options)
        assert check(limiter).source == "unavailable"
        assert len(link.words) == 1


def test_an_old_server_turns_ids_off() -> None:
    limiter, link = scripted(ResponseError("syntax error near 'ID'"), PASSED, PASSED, retry=True)
    assert check(limiter).source == "server"
    assert check(limiter).source == "server"
    assert ["ID" in words for words in link.words] == [True, False, False]


def test_faults_of_the_program_are_raised_and_no_reason_to_allow() -> None:
    for text in ["WRONGTYPE Operation against a key", "syntax error", "IDREUSED ID was used", "NOCLASS No such class"]:
        limiter, _ = scripted(ResponseError(text))
        with pytest.raises(ServerFault):
            check(limiter)


def test_a_reply_of_another_kind_is_a_fault() -> None:
    limiter, _ = scripted("OK")
    with pytest.raises(ServerFault):
        check(limiter)


def test_a_caller_that_leaves_gives_the_probe_back() -> None:
    limiter = FakeLimiter(policy="api", limits="TB 100 1 1", key=by("a"))
    limiter.go_away("refused")
    for _ in range(5):
        check(limiter)
    limiter.advance(2)
    double = limiter._link

    class Gone(Scripted):
        async def send(self, call: Call) -> Any:
            raise asyncio.CancelledError

    limiter._link = Gone()
    with pytest.raises(asyncio.CancelledError):
        check(limiter)
    limiter._link = double
    limiter.come_back()
    assert check(limiter).source == "server"


def test_a_full_table_lets_new_keys_share_one_state() -> None:
    clock = Clock(1000)
    local = LocalLimiter(parse("TB 1 1 600"), clock.ns, max_keys=3)
    assert all(not local.check(f"k{i}")[0].denies for i in range(3))
    assert not local.check("x")[0].denies
    assert local.check("y")[0].denies
    assert len(local) <= 4
    clock.advance(600)
    assert not local.check("z")[0].denies


def test_memory_is_bounded_over_many_keys() -> None:
    limiter = FakeSyncLimiter(policy="api", limits="TB 1 1 600", key=by("a"), on_unavailable="local", instances=1)
    chosen = random.Random(33)
    for _ in range(30_000):
        limiter.check(key=f"k{chosen.randrange(10**9)}", cost=2)
    assert len(limiter._cache) <= 10_000
