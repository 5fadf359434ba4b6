"""What to do when the limiter does not answer: decide without it, and soon.

Reads lines "open" or "closed" and says for each whether a request may go ahead, who
decided that, and after how many milliseconds. Needs redis-py. REDIS_URL says where the
server is (redis://127.0.0.1:6379).
"""

import os
import sys
import time
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import MasterDownError, ReadOnlyError
from redis.retry import Retry


def connect(host, port):
    return redis.Redis(
        host=host,
        port=port,
        socket_connect_timeout=0.05,
        socket_timeout=0.05,
        retry=Retry(NoBackoff(), 0),  # the default tries again, and sleeps in between
    )


# How errors begin which say that no limit is decided now; LOADING is a ConnectionError.
AWAY = ("UNAVAILABLE", "BUSY", "MISCONF", "NOREPLICAS")


def allowed(client, key, fail_open):
    """Returns whether key may go ahead, and whether the limiter has said so."""
    try:
        reply = client.execute_command("CL.THROTTLE", key, 15, 30, 60)
    except (redis.ConnectionError, redis.TimeoutError, ReadOnlyError, MasterDownError):
        return fail_open, False
    except redis.ResponseError as error:
        if str(error).startswith(AWAY):
            return fail_open, False
        return False, True  # a client may have caused it by its key: log it
    return reply[0] == 0, True


def main():
    url = urlsplit(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
    client = connect(url.hostname, url.port)
    for line in sys.stdin:
        began = time.monotonic()
        ok, answered = allowed(client, "away:python", line.strip() == "open")
        took = int((time.monotonic() - began) * 1000)
        print("allowed" if ok else "refused", "answered" if answered else "away", took, flush=True)


if __name__ == "__main__":
    main()
