"""The vectors that all languages share. See clients/vectors/README.md."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis._parsers.base import BaseParser

from cellserver_client import headers, keys, wire
from cellserver_client.breaker import Breaker, BreakerOptions, Ticket
from cellserver_client.cache import DenialCache
from cellserver_client.clauses import most_units, parse
from cellserver_client.core import is_answer
from cellserver_client.errors import ConfigurationError, KeyFault, Unavailable, judge, text_of
from cellserver_client.fastapi import LimitMiddleware
from cellserver_client.local import LocalLimiter, binding
from cellserver_client.result import repeated, result_of
from cellserver_client.testing import Clock, FakeLimiter

FOLDER = Path(os.environ.get("CELL_VECTORS") or Path(__file__).parents[2] / "vectors")
Vector = dict[str, Any]
JUDGES: dict[str, Callable[[Vector], None]] = {}


def judges(name: str) -> Callable[[Callable[[Vector], None]], Callable[[Vector], None]]:
    """Names the file whose vectors a function judges."""

    def note(function: Callable[[Vector], None]) -> Callable[[Vector], None]:
        JUDGES[name] = function
        return function

    return note


def every_vector() -> list[Any]:
    return [
        pytest.param(path.name, vector, id=f"{path.stem}: {vector.get('name') or vector.get('clause')}")
        for path in sorted(FOLDER.glob("*.json"))
        for vector in json.loads(path.read_text())["vectors"]
    ]


@pytest.mark.parametrize(("name", "vector"), every_vector())
def test_vector(name: str, vector: Vector) -> None:
    assert name in JUDGES, f"{name} is a file that no test reads"
    JUDGES[name](vector)


def test_each_file_is_there() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.json")) == sorted(JUDGES)


def clause_answer(v: Vector) -> headers.ClauseAnswer:
    return headers.ClauseAnswer(
        denies=v.get("denies", False),
        limit=v["limit"],
        remaining=v["remaining"],
        retry_ms=v["retryMillis"],
        reset_ms=v["resetMillis"],
        window_ms=v.get("windowMillis", 0),
        concurrent=v.get("concurrent", False),
        unlimited=v.get("unlimited", False),
    )


@judges("headers.json")
def judge_headers(v: Vector) -> None:
    a = v["answer"]
    answer = headers.Answer(
        a["policy"],
        a["denied"],
        a.get("blocked", False),
        clause_answer(a["binding"]),
        [clause_answer(c) for c in a["clauses"]],
    )
    assert dict(headers.fields(answer, v["style"])) == v["headers"]
    if "problem" in v:
        assert headers.problem(answer, v["status"]) == v["problem"]


@judges("ip.json")
def judge_address(v: Vector) -> None:
    networks = [ipaddress.ip_network(n) for n in v.get("networks", [])]

    def key() -> str:
        address = keys.client_address(v["peer"], v["forwarded"], trusted_hops=v.get("hops", 0), trusted_networks=networks)
        return keys.UNKNOWN if address is None else keys.address_key(address, v["v6Prefix"])

    if v.get("error"):
        with pytest.raises(KeyFault):
            key()
    else:
        assert key() == v["key"]


@judges("keys.json")
def judge_key(v: Vector) -> None:
    parts = v["parts"]
    if v.get("secret"):
        key = keys.hashed(parts[0])
    else:
        key = keys.bounded(parts[0] if len(parts) == 1 else keys.joined(parts))
    assert key == v["key"]
    if "limits" in v:
        assert [wire.state_key(v["limits"], key, i) for i in (1, 2)] == v["states"]


@judges("breaker.json")
def judge_breaker(v: Vector) -> None:
    breaker = Breaker(BreakerOptions(pause=v["pause"] / 1000, jitter=0), lambda: 0.5)
    tickets: dict[int, Ticket] = {}
    for step in v["steps"]:
        now = step["at"] / 1000
        if "begin" in step:
            ticket = tickets[step["begin"]] = breaker.begin(now)
            assert ("probe" if ticket.probe else "call" if ticket.allowed else "skip") == step["answer"]
        else:
            breaker.end(tickets[step["end"]], now, step["outcome"])
        assert breaker.state == step["state"]


@judges("cache.json")
def judge_cache(v: Vector) -> None:
    cache: DenialCache[Any] = DenialCache(v["most"] / 1000)
    for step in v["steps"]:
        if step.get("mode") or step.get("ttl"):
            continue  # the limiters have neither in calls whose denials are kept
        now = 1000 + step["at"] / 1000
        scope = tuple(step.get(name, "") for name in ("policy", "key", "class", "keep", "member"))
        if "put" in step:
            result = result_of("api", wire.read(step["put"]), step["cost"])
            if not result.allowed:
                cache.store(scope, step["cost"], result.limit, result.retry_after, now, result)
            continue
        found = cache.find(scope, step["cost"], now) if step["cost"] > 0 else None
        if found is None:
            assert "hit" not in step
        else:
            c = repeated(*found).policies[0]
            assert [int(c.denies), c.limit, c.remaining, c.retry_ms, c.reset_ms] == step["hit"]


def five(answer: headers.ClauseAnswer) -> list[int]:
    return [int(answer.denies), answer.limit, answer.remaining, answer.retry_ms, answer.reset_ms]


@judges("decide.json")
def judge_decisions(v: Vector) -> None:
    clock = Clock()
    local = LocalLimiter(parse(v["clauses"]), clock.ns)
    for i, step in enumerate(v["steps"]):
        clock.advance(step["at"] / 1000 - clock.seconds())
        clock._ns = step["at"] * 1_000_000
        answers = local.check("key", step["cost"], step.get("member", ""))
        assert [five(a) for a in answers] == step["each"], f"step {i}: {step}"
        assert five(binding(answers)) == step["reply"], f"step {i}: {step}"


parse_error: Callable[[str], Exception] = BaseParser.parse_error


@judges("errors.json")
def judge_error(v: Vector) -> None:
    if "fault" in v:
        broken = Unavailable(v["fault"], broken=v["fault"] == "broken")
        assert (broken.broken and v.get("id", False)) == v["retry"]
        return
    started = v["phase"] == "call"
    reply = v.get("reply", "")
    error = parse_error(reply)
    if not is_answer(error):
        # redis-py takes a server without room for a connection for a lost connection.
        assert (v["verdict"], v["failure"]) == ("unavailable", True)
        return
    text = text_of(error)
    assert judge(text, started=started, has_id=v.get("id", False)) == (v["verdict"], v["failure"])


@judges("wire.json")
def judge_wire(v: Vector) -> None:
    if v["do"] == "read":
        judge_reply(v)
        return
    clauses = parse(v["limits"]) if v.get("limits") else ()
    target = wire.Target(v["policy"], clauses, v.get("class", ""), v.get("keep", ""))
    id, ttl, member = v.get("id", ""), v.get("ttl", 0), v.get("member", "")

    def words() -> list[str] | None:
        if v["do"] == "start":
            return wire.start_words(target, member)
        if v["do"] == "renew":
            return wire.renew_words(target, v["key"], id, ttl)
        if v["do"] in ("commit", "cancel"):
            return wire.settle_words(target, v["key"], id, v["cost"] if v["do"] == "commit" else None)
        return wire.words(target, v["key"], v["cost"], mode=v.get("mode", ""), member=member, id=id, ttl_ms=ttl)

    if v.get("error"):
        with pytest.raises(ConfigurationError):
            words()
    else:
        assert words() == v.get("words")


def judge_reply(v: Vector) -> None:
    if v.get("error"):
        with pytest.raises(ValueError, match="reply"):
            wire.read(v["reply"])
        return
    reply, cost, want = wire.read(v["reply"]), v["cost"], v["result"]
    assert bool(reply.denied) is not want["allowed"]
    assert (reply.whole.limit, reply.whole.remaining) == (want["limit"], want["remaining"])
    assert (reply.whole.retry_ms if reply.whole.retry_ms >= 0 else None) == want["retryAfter"]
    assert (reply.whole.reset_ms if reply.whole.reset_ms >= 0 else None) == want["resetAfter"]
    assert (reply.never(cost), reply.blocked(cost)) == (want["never"], want["blocked"])
    assert len(reply.clauses) == want["clauses"]


@judges("share.json")
def judge_share(v: Vector) -> None:
    shared = parse(v["clause"])[0].share(v["instances"])
    assert str(shared) == v["share"]
    assert most_units(shared.local()) == v["limit"]
    assert str(shared.local()) == v["local"]


@judges("table.json")
def judge_table(v: Vector) -> None:
    cost = 1
    limiter = FakeLimiter(
        policy=v["policy"],
        policies={v["policy"]: v["limits"]},
        key=lambda request: "a",
        cost=lambda request: cost,
        on_unavailable=v["onUnavailable"],
        instances=v.get("instances"),
        fallback=v["limits"] if v["onUnavailable"] == "local" else (),
        breaker=BreakerOptions(pause=v["pause"] / 1000, jitter=0),
    )
    asked = 0
    answer = limiter.server.answer

    def counting(call: Any) -> Any:
        nonlocal asked
        asked += 1
        return answer(call)

    limiter.server.answer = counting  # type: ignore[method-assign]
    for step in v["steps"]:
        limiter.advance(step["at"] / 1000 - limiter.clock.seconds())
        if "server" in step:
            if step["server"] == "away":
                limiter.go_away("refused")
            else:
                limiter.come_back()
            continue
        cost, asked = step["cost"], 0
        status, fields = asyncio.run(through(limiter))
        assert (status, fields, bool(asked)) == (step["status"], step.get("headers", {}), step["asked"]), step


async def through(limiter: FakeLimiter) -> tuple[int, dict[str, str]]:
    """A request through the middleware: the status and the header fields of limits."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello"})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": ("203.0.113.9", 1)}
    await LimitMiddleware(app, limiter)(scope, receive, send)
    fields = {n.decode(): value.decode() for n, value in sent[0]["headers"] if not n.startswith(b"content-")}
    return sent[0]["status"], fields
