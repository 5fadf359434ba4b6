"""Fixtures of the tests with the real program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from real.servers import COMMAND, Server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips the tests of this folder without the program."""
    for item in items:
        if not COMMAND and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="CELL_SERVER_CMD is not set"))


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with the policy of the worked examples."""
    running = Server()
    running.policy("api", "TB 2 1 60")
    yield running
    running.kill()
