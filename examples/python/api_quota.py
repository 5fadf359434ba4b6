"""An API quota per user: 100 requests per minute, and the headers that tell of it.

Needs redis-py. REDIS_URL says where the server is (redis://127.0.0.1:6379).
"""

import os

import redis

LIMIT, WINDOW = 100, 60  # requests, seconds


def check(client, user):
    """Counts a request. Returns the HTTP status and headers to answer with."""
    limited, limit, remaining, retry_after, reset_after = client.execute_command(
        "SW.ALLOW", f"api:{user}", LIMIT, WINDOW
    )
    headers = {
        "RateLimit-Policy": f'"user";q={limit};w={WINDOW}',
        "RateLimit": f'"user";r={remaining};t={retry_after if limited else reset_after}',
    }
    if limited:
        headers["Retry-After"] = str(retry_after)
    return (429 if limited else 200), headers


def main():
    client = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
    client.delete("api:alice")
    for request in range(1, LIMIT + 2):
        status, headers = check(client, "alice")
        if request in (1, LIMIT, LIMIT + 1):
            print(request, status, headers["RateLimit"], headers.get("Retry-After", "-"))


if __name__ == "__main__":
    main()
