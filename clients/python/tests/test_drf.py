"""The throttle of Django REST framework, with the double of the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings
from rest_framework.test import APIClient

from cellserver_client.drf import ip
from cellserver_client.testing import FakeSyncLimiter

POLICIES = {"api": "TB 9 1 60", "uploads": "TB 1 1 60", "minute": "TB 3 1 60", "day": ["SW 4 1d FIXED"]}


@pytest.fixture
def limiter() -> Iterator[FakeSyncLimiter]:
    made = FakeSyncLimiter(policy="api", policies=POLICIES, key=ip(), on_unavailable="deny")
    with override_settings(CELLSERVER={"limiter": made}):
        yield made


@pytest.fixture
def client(limiter: FakeSyncLimiter) -> Any:
    return APIClient(raise_request_exception=False)


def test_the_scope_of_a_view_is_its_policy(client: Any, limiter: FakeSyncLimiter) -> None:
    assert client.get("/uploads")["RateLimit"] == '"uploads";r=0;t=60'
    limiter.advance(1.5)
    denied = client.get("/uploads")
    assert (denied.status_code, denied["Retry-After"], denied["RateLimit"]) == (429, "59", '"uploads";r=0;t=59')
    assert "59 seconds" in denied.json()["detail"]
    limiter.advance(59)
    assert client.get("/uploads").status_code == 200


def test_a_view_without_a_scope_has_the_policy_of_the_setting(client: Any) -> None:
    assert client.get("/things")["RateLimit"] == '"api";r=8;t=60'


def test_several_throttles_have_one_field(client: Any, limiter: FakeSyncLimiter) -> None:
    first = client.get("/both")
    assert first["RateLimit"].startswith('"minute";r=2;t=60, "day";r=2;t=')
    assert first["RateLimit-Policy"] == '"minute";q=3, "day";q=4'
    client.get("/both")
    denied = client.get("/both")
    assert denied.status_code == 429
    assert int(denied["Retry-After"]) > 60
    assert [(call.policy, call.cost) for call in limiter.calls][-2:] == [("minute", 1), ("day", 2)]


def test_a_cost_above_the_limit_has_no_wait(client: Any, limiter: FakeSyncLimiter) -> None:
    limiter.server._tables["day"] = limiter.server._tables["uploads"]
    denied = client.get("/both")
    assert denied.status_code == 429
    assert "Retry-After" not in denied


def test_a_server_that_is_away_is_503(client: Any, limiter: FakeSyncLimiter) -> None:
    client.get("/things")
    limiter.go_away("refused")
    answer = client.get("/things")
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert "RateLimit" not in answer
