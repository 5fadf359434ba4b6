"""What the sync and the asyncio connections share."""

from __future__ import annotations

import asyncio
from typing import Any

from redis.backoff import NoBackoff
from redis.exceptions import TimeoutError as RedisTimeout

MAX_CONNECTIONS = 8
"""Connections of one limiter for asyncio. Calls that find none free go with the next batch."""

MAX_SYNC_CONNECTIONS = 64
"""Connections of one sync limiter: as many threads are served at once."""

CONNECT_TIMEOUT = 1.0
"""The seconds that a connection may take to be made. A call does not wait longer than its deadline."""


def url_options(url: str) -> dict[str, Any]:
    """Options of connections to a URL that it does not have itself."""
    options: dict[str, Any] = {"socket_timeout": None, "socket_connect_timeout": CONNECT_TIMEOUT}
    if "protocol=" not in url:
        options["protocol"] = 2
    return options


def connection_of(pool: Any) -> Any:
    """A new connection with the settings of a pool, outside the pool.

    Pool.make_connection would count it among those of the pool, and never take it off again. redis-py neither tries again
    nor has a timeout of its own: both would be beside the deadline.
    """
    connection = pool.connection_class(**pool.connection_kwargs)
    retry = type(connection.retry)(NoBackoff(), 0)
    connection.retry = retry
    connection.socket_timeout = None
    connection.health_check_interval = 0
    return connection


def reason_of(error: BaseException) -> str:
    """The reason of an unavailable server, for logs and metrics."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ConnectionRefusedError):
            return "refused"
        if isinstance(seen, (RedisTimeout, TimeoutError, asyncio.TimeoutError)):
            return "timeout"
        seen = seen.__cause__ or seen.__context__
    return "refused" if "refused" in str(error) else "connection"
