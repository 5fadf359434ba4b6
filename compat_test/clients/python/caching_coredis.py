"""Drives the cache of coredis: python caching_coredis.py

What it reports is said in the README of the clients.
"""

import asyncio
import os
import time

import coredis
from coredis.patterns.cache import LRUCache

PATIENCE = 5  # seconds that an invalidation may take on its way


async def main():
    host, port = os.environ["CELL_ADDR"].rsplit(":", 1)
    address = {"host": host, "port": int(port), "decode_responses": True}
    print("info library coredis")
    print("info version", coredis.__version__)
    reader = coredis.Redis(**address, cache=LRUCache())
    async with reader, coredis.Redis(**address) as writer, coredis.Redis(**address) as others:
        over = False

        async def make_noise():
            i = 0
            while not over:
                await others.set(f"noise:{i % 4}", str(i))
                i += 1

        noise = asyncio.create_task(make_noise())
        try:
            stale, hits = await rounds(reader, writer)
        finally:
            over = True
            await noise
    ok = stale == 0 and hits > 0
    print("ok never-stale" if ok else f"FAIL never-stale: {stale} stale, {hits} kept")
    return 0 if ok else 1


async def rounds(reader, writer):
    stale = hits = 0
    for i in range(int(os.environ["CELL_ROUNDS"])):
        key = f"cached:{i % 8}"
        before = await reader.get(key)
        hits += await reader.get(key) == before
        await reader.get(f"noise:{i % 4}")
        await writer.set(key, str(i))
        end = time.monotonic() + PATIENCE
        while await reader.get(key) != str(i):
            if time.monotonic() > end:
                stale += 1
                break
            await asyncio.sleep(0)
        if stale == 3:
            break
    return stale, hits


raise SystemExit(asyncio.run(main()))
