"""Drives redis-py: python client.py sync|asyncio

CELL_ADDR is host:port; CELL_RESP, when set, is the protocol to ask for instead
of the client's default.
"""

import asyncio
import os
import sys

import redis
import redis.asyncio

from checks import Checks, Failed, say


def options():
    host, port = os.environ["CELL_ADDR"].rsplit(":", 1)
    chosen = {"host": host, "port": int(port)}
    if os.environ.get("CELL_RESP"):
        chosen["protocol"] = int(os.environ["CELL_RESP"])
    return chosen


class Asyncio:
    """redis.asyncio.Redis behind the methods that the checks use."""

    connection_error = redis.exceptions.ConnectionError

    def __init__(self):
        self.client = redis.asyncio.Redis(**options())

    async def ping(self):
        return await self.client.ping()

    async def call(self, *args):
        return await self.client.execute_command(*args)

    async def pipeline(self, commands):
        # Without MULTI and EXEC around it.
        pipe = self.client.pipeline(transaction=False)
        for args in commands:
            pipe.execute_command(*args)
        return await pipe.execute(raise_on_error=False)

    async def error(self, *args):
        try:
            got = await self.call(*args)
        except redis.exceptions.ResponseError as e:
            return self.error_text(e)
        raise Failed(f"got {got!r}, want a ResponseError")

    def error_text(self, e):
        if type(e) is not redis.exceptions.ResponseError:
            raise Failed(f"got {e!r}, want a plain ResponseError")
        return str(e)

    async def client_info(self):
        return await self.client.client_info()

    async def close(self):
        await self.client.aclose()


class Sync(Asyncio):
    """redis.Redis behind the same coroutines, none of which ever suspends."""

    def __init__(self):
        self.client = redis.Redis(**options())

    async def ping(self):
        return self.client.ping()

    async def call(self, *args):
        return self.client.execute_command(*args)

    async def pipeline(self, commands):
        pipe = self.client.pipeline(transaction=False)
        for args in commands:
            pipe.execute_command(*args)
        return pipe.execute(raise_on_error=False)

    async def client_info(self):
        return self.client.client_info()

    async def close(self):
        self.client.close()


async def main(mode):
    say(f"info version {redis.__version__}")
    adapter = {"sync": Sync, "asyncio": Asyncio}[mode]()
    code = await Checks(adapter).run()
    await adapter.close()
    return code


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
