"""Runs the tests that limits ships: python limits_suite.py sync|asyncio

They are those for one Redis that is reached by an address. What needs memcached,
MongoDB, Valkey, a cluster, a sentinel or a Unix socket is left out, and so are the
benchmarks and what the suite itself marks as flaky: those fail at random on a Redis, for
instance if two calls come within a millisecond. Every test that runs is one check.

Many of them compare instants with a tolerance of hundredths of a second. A test that
failed is therefore run again, up to twice: a busy machine fails at random, a wrong
answer every time.
"""

import importlib.metadata
import os
import pathlib
import re
import shutil
import sys
import tempfile

# The asynchronous tests that name no implementation use coredis.
os.environ["ASYNC_REDIS_IMPLEMENTATION"] = "redispy"

import pytest
import redis.asyncio

import suite_plugin
from checks import PORT, say

SUITE = pathlib.Path(__file__).parent / ".venv" / "sdist" / "limits-5.8.0"
TRIES = 3
# The suite's own port for its Redis.
REDIS_PORT = "7379"


def prepare(mode, folder):
    """Copies the tests into folder and points them at the server."""
    shutil.copy(SUITE / "pytest.ini", folder)
    tests = pathlib.Path(folder) / "tests"
    shutil.copytree(SUITE / "tests", tests, ignore=shutil.ignore_patterns("benchmarks"))
    for file in tests.rglob("*.py"):
        file.write_text(file.read_text().replace(REDIS_PORT, PORT))
    if mode == "asyncio":
        return ["tests/aio"]
    shutil.rmtree(tests / "aio")
    return ["tests"]


def be_patient():
    """Gives the one script with a huge cost time on a busy machine.

    It computes for seconds. By default redis-py gives up after five, and a server answers
    BUSY after as many.
    """
    redis.Redis(port=int(PORT)).config_set("busy-reply-threshold", 120_000)
    for connection in redis.connection, redis.asyncio.connection:
        init = connection.AbstractConnection.__init__

        def waits(self, *args, init=init, **options):
            options.setdefault("socket_timeout", 120)
            init(self, *args, **options)

        connection.AbstractConnection.__init__ = waits


def run(wanted):
    """Runs what is wanted, and again what failed."""
    passed, failed = set(), {}
    for _ in range(TRIES):
        outcomes = suite_plugin.Outcomes()
        pytest.main(
            ["-q", "-p", "suite_plugin", "-p", "no:cacheprovider", "--tb=short",
             "-o", "addopts=", "-o", "filterwarnings=ignore",
             "-o", "asyncio_default_fixture_loop_scope=function",
             "-m", "redis and not benchmark and not flaky", "-k", "not uds", *wanted],
            plugins=[outcomes],
        )
        passed |= outcomes.passed
        failed = outcomes.failed
        if not failed:
            break
        wanted = sorted(failed)
    return passed, failed


def name(test):
    """tests/aio/test_a.py::TestB::test_c[redis] becomes aio/test_a/TestB/test_c[redis]."""
    return re.sub(r"\.py::|::", "/", test.removeprefix("tests/"))


def main(mode):
    say(f"info version {importlib.metadata.version('limits')}")
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    report = os.dup(1)
    os.dup2(2, 1)  # what pytest prints is a diagnostic
    with tempfile.TemporaryDirectory() as folder:
        wanted = prepare(mode, folder)
        be_patient()
        os.chdir(folder)
        sys.path.insert(0, folder)
        passed, failed = run(wanted)
        os.chdir("/")
    sys.stdout.flush()
    os.dup2(report, 1)
    for test in sorted(passed):
        say(f"ok {name(test)}")
    for test, why in sorted(failed.items()):
        say(f"FAIL {name(test)}: {why}")
    sys.stdout.flush()
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
