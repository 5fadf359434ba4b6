"""The examples of the README."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import cellserver_client.fastapi
import cellserver_client.limits
import cellserver_client.sync
from cellserver_client.fastapi import LimitMiddleware
from cellserver_client.testing import FakeLimiter, FakeSyncLimiter

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)


def example(containing: str) -> str:
    return next(str(code) for code in EXAMPLES if containing in code)


def test_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(url: str, **options: Any) -> FakeLimiter:
        return FakeLimiter(policies={"api": "TB 200 100 1", "chat": "TB 1 1 60"}, **options)

    monkeypatch.setattr(cellserver_client.fastapi, "Limiter", fake)
    names: dict[str, Any] = {}
    exec(compile(example("LimitMiddleware"), "README.md", "exec", dont_inherit=True), names)
    with TestClient(names["app"], client=("203.0.113.9", 1)) as client:
        assert client.post("/chat").headers["RateLimit"] == '"chat";r=0;t=60'
        assert client.post("/chat").status_code == 429


def test_the_job(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fake(url: str, **options: Any) -> FakeSyncLimiter:
        limiter = FakeSyncLimiter(policies={"api": "TB 1 1 60"}, **options)
        limiter.check(key="ann")
        return limiter

    monkeypatch.setattr(cellserver_client.sync, "Limiter", fake)
    exec(compile(example("sync import"), "README.md", "exec", dont_inherit=True), {"job": SimpleNamespace(customer="ann")})
    assert capsys.readouterr().out == "try again in 60.0 seconds\n"


def test_the_double() -> None:
    code = example("FakeLimiter")
    lines = "\n".join(f"    {line}" for line in code.splitlines())
    names: dict[str, Any] = {}
    exec(compile(f"async def run():\n{lines}\n    return limiter", "README.md", "exec", dont_inherit=True), names)
    limiter = asyncio.run(names["run"]())
    assert [tuple(call) for call in limiter.calls] == [("api", "ann", 1)]
    assert asyncio.run(limiter.check()).source == "unavailable"


def test_the_settings_of_django() -> None:
    names: dict[str, Any] = {}
    exec(compile(example("CELLSERVER"), "README.md", "exec", dont_inherit=True), names)
    cellserver_client.sync.Limiter(**names["CELLSERVER"]).close()


def test_the_storage_of_flask_limiter(monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(url: str, **options: Any) -> FakeSyncLimiter:
        return FakeSyncLimiter(**options)

    monkeypatch.setattr(cellserver_client.limits, "sync", SimpleNamespace(Limiter=fake))
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(example("flask_limiter"), "README.md", "exec", dont_inherit=True), names)
    names["app"].add_url_rule("/", view_func=lambda: "hello")
    client = names["app"].test_client()
    answers = [client.get("/") for _ in range(101)]
    assert [answer.status_code for answer in answers] == [200] * 100 + [429]
    assert answers[1].headers["X-RateLimit-Remaining"] == "98"


def test_the_reservation() -> None:
    async def model(request: str) -> SimpleNamespace:
        return SimpleNamespace(tokens=300, text="hello")

    names: dict[str, Any] = {"model": model}
    exec(compile(example("limiter.reserve"), "README.md", "exec", dont_inherit=True), names)
    limiter = FakeLimiter(limits="TB 1000 1 60", key=lambda request: "ann")
    got = [asyncio.run(names["answer"](limiter, "request")) for _ in range(2)]
    assert got == ["hello", "try again in 6000.0 seconds"]


def test_the_charge_by_status() -> None:
    app = FastAPI()
    limiter = FakeLimiter(limits="TB 1 1 60", key=lambda request: "ann")
    exec(
        compile(example("charge_when"), "README.md", "exec"),
        {"app": app, "limiter": limiter, "LimitMiddleware": LimitMiddleware},
    )
    with TestClient(app) as client:
        assert [client.get("/").status_code for _ in range(3)] == [404] * 3


def test_every_option_is_in_the_readme() -> None:
    import inspect

    from cellserver_client import aio
    from cellserver_client.core import Options

    text = README.read_text(encoding="utf-8")
    options = set(inspect.signature(aio.Limiter.__init__).parameters) - {"self", "shared", "link", "options"}
    options |= Options.__required_keys__ | Options.__optional_keys__
    assert {"url", "client", "breaker", "key", "on_unavailable", "headers"} <= options
    assert [option for option in options if f"`{option}`" not in text] == []
