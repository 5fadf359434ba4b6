"""How the programs of this folder reach the server and report what they find."""

import importlib.metadata
import multiprocessing
import os
import sys
import threading
import time
import traceback
from concurrent.futures import ProcessPoolExecutor

import redis

HOST, PORT = os.environ["CELL_ADDR"].rsplit(":", 1)
URL = f"redis://{HOST}:{PORT}"
# How much later than promised a limit may be tried without being unfair to the server.
MARGIN = 0.3


class Failed(Exception):
    """A check got another answer than the one it needs."""


def client(**options):
    return redis.Redis(host=HOST, port=int(PORT), **options)


def say(line):
    print(line.replace("\r", "\\r").replace("\n", "\\n"), flush=True)


def expect(got, want, what="it"):
    if got != want:
        raise Failed(f"{what} is {got!r}, want {want!r}")


def expect_between(low, got, high, what):
    if not low <= got <= high:
        raise Failed(f"{what} is {got!r}, want {low!r} to {high!r}")


def expect_error(kind, part, call):
    """Requires that call raises a kind of error whose text has part in it."""
    try:
        got = call()
    except kind as why:
        if part not in str(why):
            raise Failed(f"the error text {str(why)!r} lacks {part!r}") from why
        return why
    raise Failed(f"got {got!r}, want a {kind}")


def admitted(calls, call):
    """Calls one after the other and counts the true answers."""
    return sum(bool(call()) for _ in range(calls))


def admitted_at_once(callers, call):
    """Lets that many threads call at the same time and counts the true answers."""
    start = threading.Barrier(callers)
    answers, errors = [], []

    def one():
        start.wait()
        try:
            answers.append(bool(call()))
        except Exception as why:  # raised again below, in the caller's thread
            errors.append(why)

    threads = [threading.Thread(target=one) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(answers)


def elsewhere(function, *args):
    """Calls a function of the program in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(function, *args).result()


def window_with(room, period):
    """Waits until a window of the clock has room seconds left."""
    left = period - time.time() % period
    if left < room:
        time.sleep(left + 0.01)


def run(distribution, *checks):
    """Runs the checks, reports them, and ends the program."""
    say(f"info version {importlib.metadata.version(distribution)}")
    failed = 0
    for check in checks:
        name = check.__name__.replace("_", "-")
        try:
            check()
            say(f"ok {name}")
        except Exception as why:  # the parent has to see every failure
            failed += 1
            traceback.print_exc(limit=-3)
            say(f"FAIL {name}: {type(why).__name__}: {why}")
    sys.stdout.flush()
    os._exit(1 if failed else 0)  # some libraries leave threads behind
