"""The checks that every Python client has to pass, and how they are reported.

An adapter hides whether the client is synchronous: all its methods are
coroutines. One line per check goes to standard output (see ../README.md).
"""

import sys
import time

# A key with a NUL, a line end and bytes that are not UTF-8.
BINARY_KEY = b"\x00\xff\r\n\x80 key"
USAGE = "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
FRESH = [0, 16, 15, -1, 2]
# How long a client may take to find a restarted server, in seconds.
RECONNECT_WITHIN = 20


class Failed(Exception):
    """A check got an answer other than the one it needs."""


def say(line):
    print(line.replace("\r", "\\r").replace("\n", "\\n"), flush=True)


def expect(got, want):
    if got != want or [type(x) for x in got] != [type(x) for x in want]:
        raise Failed(f"got {got!r}, want {want!r}")


def expect_text(text, *parts):
    for part in parts:
        if part not in text:
            raise Failed(f"the error text {text!r} lacks {part!r}")


class Checks:
    """Runs the checks over one adapter and counts those that fail."""

    def __init__(self, adapter):
        self.adapter = adapter
        self.failed = 0
        self.protocol = "?"

    async def connect(self):
        if await self.adapter.ping() is not True:
            raise Failed("PING was not answered with PONG")

    async def throttle_allowed(self):
        expect(await self.adapter.call("CL.THROTTLE", "allowed", 15, 30, 60), FRESH)
        expect((await self.adapter.call("CL.THROTTLE", "allowed", 15, 30, 60, 2))[:3], [0, 16, 13])

    async def throttle_denied(self):
        expect(await self.adapter.call("CL.THROTTLE", "denied", 0, 1, 3600), [0, 1, 0, -1, 3600])
        got = await self.adapter.call("CL.THROTTLE", "denied", 0, 1, 3600)
        expect(got[:3], [1, 1, 0])
        if not 3500 <= got[3] == got[4] <= 3600:
            raise Failed(f"got {got!r}, want retry and reset of about an hour")

    async def pipeline_100(self):
        replies = await self.adapter.pipeline([("CL.THROTTLE", "pipeline", 99, 100, 3600)] * 100)
        expect([r[:3] for r in replies], [[0, 100, 99 - i] for i in range(100)])

    async def one_string(self):
        # redis-py splits a command name that contains spaces.
        expect(await self.adapter.call("CL.THROTTLE one-string 15 30 60"), FRESH)

    async def error_usage(self):
        text = await self.adapter.error("CL.THROTTLE", "key-only")
        expect_text(text, "Cell error: ", USAGE)
        if not text.startswith("Cell error: "):
            raise Failed(f"the error text {text!r} has something in front")

    async def error_argument(self):
        text = await self.adapter.error("CL.THROTTLE", "key", "many", 30, 60)
        expect_text(text, "Cell error: ", "Couldn't parse as integer: many")

    async def error_unknown_command(self):
        text = await self.adapter.error("CL.NOSUCH", "a", "b")
        expect_text(text, "unknown command 'CL.NOSUCH', with args beginning with: 'a' 'b'")
        await self.connect()

    async def error_in_pipeline(self):
        good = ("CL.THROTTLE", "error-in-pipeline", 15, 30, 60)
        replies = await self.adapter.pipeline([good, ("CL.THROTTLE", "key-only"), good])
        expect(replies[0], FRESH)
        expect_text(self.adapter.error_text(replies[1]), "Cell error: ", USAGE)
        expect(replies[2][:3], [0, 16, 14])

    async def odd_key(self, key):
        expect(await self.adapter.call("CL.THROTTLE", key, 15, 30, 60), FRESH)
        expect((await self.adapter.call("CL.THROTTLE", key, 15, 30, 60))[:3], [0, 16, 14])
        if await self.adapter.call("DEL", key) != 1:
            raise Failed("DEL did not find the key")
        expect(await self.adapter.call("CL.THROTTLE", key, 15, 30, 60), FRESH)

    async def binary_key(self):
        await self.odd_key(BINARY_KEY)

    async def empty_key(self):
        await self.odd_key(b"")

    async def client_info(self):
        # redis-py 5 demands all the numeric fields of Redis 7.0's line.
        self.protocol = (await self.adapter.client_info())["resp"]

    async def reconnect(self):
        say("RESTART")
        if sys.stdin.readline().strip() != "RESTARTED":
            raise Failed("the parent did not restart the server")
        deadline = time.monotonic() + RECONNECT_WITHIN
        while True:
            try:
                got = await self.adapter.call("CL.THROTTLE", "reconnect", 15, 30, 60)
                break
            except self.adapter.connection_error:
                # The client learns of the broken connection by using it.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        expect(got, FRESH)

    async def run(self):
        """Runs everything in order and returns the exit code."""
        for check in (
            self.connect,
            self.throttle_allowed,
            self.throttle_denied,
            self.pipeline_100,
            self.one_string,
            self.error_usage,
            self.error_argument,
            self.error_unknown_command,
            self.error_in_pipeline,
            self.binary_key,
            self.empty_key,
            self.client_info,
            self.reconnect,
        ):
            name = check.__name__.replace("_", "-")
            try:
                await check()
                say(f"ok {name}")
            except Exception as why:  # the parent has to see every failure
                self.failed += 1
                say(f"FAIL {name}: {type(why).__name__}: {why}")
        say(f"info resp {self.protocol}")
        return 1 if self.failed else 0
