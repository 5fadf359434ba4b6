"""The rule for names of policies, which the package has as the server has it."""

from __future__ import annotations

import contextlib

import redis

from cellserver_client import ConfigurationError
from cellserver_client.testing import FakeSyncLimiter
from real.servers import Server

NAMES = [
    *(chr(code) for code in range(256)),
    *(f"a{chr(code)}" for code in range(128)),
    *(chr(code) + "a" for code in range(128)),
    *("n" * length for length in (2, 63, 64, 65, 128)),
    *("n" * 63 + last for last in ("-", ":", "\u00e4", "\n")),
    *("..", "-", "__", "a.b-c_D9", "api#2", 'a"b', "\u0661", "\u212a", "\uff41", "a\u0301", "\U0001f600"),
]


def test_the_package_takes_the_names_that_the_server_takes(server: Server) -> None:
    taken, wanted = set(), set()
    for name in NAMES:
        with contextlib.suppress(redis.ResponseError):
            server.policy(name, "TB 1 1 1")
            wanted.add(name)
        with contextlib.suppress(ConfigurationError):
            FakeSyncLimiter(policy=name, limits="TB 1 1 1", key=lambda request: "a")
            taken.add(name)
    assert taken == wanted
    assert 0 < len(wanted) < len(NAMES)
