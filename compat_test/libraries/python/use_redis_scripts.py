"""redis-py's register_script with the limiters that articles write in Lua."""

import time

import redis

from checks import (
    MARGIN, admitted, admitted_at_once, client, elsewhere, expect, expect_between,
    expect_error, run,
)

# limit, window in seconds
WINDOW = """
local current = redis.call('INCR', KEYS[1])
if current == 1 then
  redis.call('EXPIRE', KEYS[1], ARGV[2])
end
if current > tonumber(ARGV[1]) then
  return 0
end
return 1
"""

# limit, window in microseconds, a name for this call
LOG = """
redis.replicate_commands()
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local window = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window)
if redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('ZADD', KEYS[1], now, string.format('%.0f', now) .. ':' .. ARGV[3])
  redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
  return {1, 0}
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {0, math.ceil((tonumber(oldest[2]) + window - now) / 1000)}
"""

# capacity, tokens per second, how many are wanted
BUCKET = """
local capacity, rate, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(bucket[1]) or capacity
local at = tonumber(bucket[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - at) * rate)
local allowed, wait = 0, 0
if tokens >= wanted then
  tokens, allowed = tokens - wanted, 1
else
  wait = (wanted - tokens) / rate
end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', string.format('%.6f', now))
redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate) + 1)
return {allowed, tostring(tokens), tostring(wait)}
"""

# What Java and other clients without redis-cell's command send.
PASS_THROUGH = """
return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
"""


def window(key, limit, seconds):
    script = client().register_script(WINDOW)
    return lambda: script(keys=[key], args=[limit, seconds]) == 1


def log(key, limit, seconds):
    script = client().register_script(LOG)
    return lambda: script(keys=[key], args=[limit, int(seconds * 1e6), time.monotonic_ns()])


def bucket(key, capacity, rate):
    script = client().register_script(BUCKET)

    def take(wanted=1):
        allowed, tokens, wait = script(keys=[key], args=[capacity, rate, wanted])
        return allowed == 1, float(tokens), float(wait)

    return take


def passes(kind, key, limit, calls):
    """Counts what passes of so many calls, also for another process."""
    if kind == "window":
        return admitted(calls, window(key, limit, 3600))
    if kind == "log":
        take = log(key, limit, 3600)
        return admitted(calls, lambda: take()[0] == 1)
    take = bucket(key, limit, limit / 3600)
    return admitted(calls, lambda: take()[0])


def window_in_lua():
    expect(passes("window", "window", 5, 9), 5, "what passed")
    expect_between(1, client().ttl("window"), 3600, "the seconds to live")
    take = window("short", 3, 2)
    expect(admitted(6, take), 3, "what passed of the short one")
    time.sleep(2 + MARGIN)
    expect(admitted(6, take), 3, "what passed afterwards")


def log_in_lua():
    expect(passes("log", "log", 5, 9), 5, "what passed")
    expect(client().zcard("log"), 5, "the entries")
    take = log("short log", 2, 1.5)
    expect(admitted(2, lambda: take()[0] == 1), 2, "what passed of the short one")
    passed, wait = take()
    expect(passed, 0, "the third")
    expect_between(1, wait, 1500, "the milliseconds to wait")
    time.sleep(wait / 1000 + MARGIN)
    expect(take()[0], 1, "a call after the wait")


def bucket_in_lua():
    expect(passes("bucket", "bucket", 5, 9), 5, "what passed")
    take = bucket("short bucket", 4, 2)
    expect(take(4)[0], True, "a call for all")
    passed, tokens, wait = take(2)
    expect(passed, False, "a call for two more")
    expect_between(0.0, tokens, 1.999, "the tokens")
    expect_between(0.0001, wait, 1.0, "the seconds to wait")
    time.sleep(wait + MARGIN)
    expect(take(2)[0], True, "a call after the wait")


def parallel():
    take = log("parallel log", 10, 3600)
    calls = {
        "window": window("parallel window", 10, 3600),
        "log": lambda: take()[0] == 1,
        "bucket": lambda: bucket("parallel bucket", 10, 10 / 3600)()[0],
    }
    for kind, call in calls.items():
        expect(admitted_at_once(40, call), 10, f"{kind}: what passed")


def other_process():
    for kind in ("window", "log", "bucket"):
        key = f"shared {kind}"
        expect(passes(kind, key, 5, 2), 2, f"{kind}: what passed here")
        there = elsewhere(passes, kind, key, 5, 9)
        expect(there, 3, f"{kind}: what passed in the other process")


def reset():
    for kind in ("window", "log", "bucket"):
        key = f"deleted {kind}"
        expect(passes(kind, key, 2, 4), 2, f"{kind}: what passed")
        expect(client().delete(key), 1, f"{kind}: what was deleted")
        expect(passes(kind, key, 2, 4), 2, f"{kind}: what passed afterwards")


def loaded_again():
    """A Script loads itself again when the server says NOSCRIPT."""
    take = window("flushed", 3, 3600)
    expect(take(), True, "the first call")
    client().script_flush()
    expect(take(), True, "a call when the server has forgotten the script")
    expect_error(redis.exceptions.NoScriptError, "", lambda: client().evalsha("0" * 40, 0))


def in_a_pipeline():
    connection = client()
    script = connection.register_script(WINDOW)
    pipe = connection.pipeline()
    for _ in range(5):
        script(keys=["pipelined"], args=[3, 3600], client=pipe)
    expect(pipe.execute(), [1, 1, 1, 0, 0], "the replies")


def cell_pass_through():
    connection = client()
    script = connection.register_script(PASS_THROUGH)
    call = lambda key: script(keys=[key], args=[4, 5, 3600, 1])
    try:
        connection.execute_command("CL.THROTTLE", "probe", 0, 1, 1)
    except redis.ResponseError:
        # A Redis without redis-cell: its error has to reach the caller.
        part = "Unknown Redis command called from script"
        expect_error(redis.ResponseError, part, lambda: call("cell"))
        return
    replies = [call("cell") for _ in range(7)]
    expect([r[:3] for r in replies[:5]], [[0, 5, 4 - i] for i in range(5)], "what passed")
    for limited, _, remaining, retry, after in replies[5:]:
        expect((limited, remaining), (1, 0), "limited and remaining")
        expect_between(600, retry, 720, "retry after")
        expect_between(3000, after, 3600, "reset after")
    passed = admitted_at_once(40, lambda: call("parallel cell")[0] == 0)
    expect(passed, 5, "what passed at once")
    expect(connection.delete("cell"), 1, "what was deleted")
    expect(call("cell")[:3], [0, 5, 4], "the first call afterwards")


def errors():
    connection = client()
    take = window("list", 3, 3600)
    connection.rpush("list", "element")
    expect_error(redis.ResponseError, "WRONGTYPE", take)
    broken = connection.register_script("return no_such_variable")
    expect_error(redis.ResponseError, "nonexistent global variable 'no_such_variable'", broken)
    expect_error(
        redis.ResponseError, "Error compiling script", connection.register_script("return (")
    )
    own = connection.register_script("return redis.error_reply('MINE of the script')")
    expect_error(redis.ResponseError, "MINE of the script", own)


if __name__ == "__main__":
    run(
        "redis",
        window_in_lua, log_in_lua, bucket_in_lua, parallel, other_process, reset,
        loaded_again, in_a_pipeline, cell_pass_through, errors,
    )
