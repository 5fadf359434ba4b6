"""Several limits at once: per second and per day of a user, and per address.

Either all of them are charged, or none. Needs redis-py. REDIS_URL says where the
server is (redis://127.0.0.1:6379).
"""

import os

import redis


def allow(client, user, address):
    """Charges all three limits. Returns None, or the limit that is in the way."""
    keys = [f"{user}:second", f"{user}:day", f"ip:{address}"]
    binding, each = client.execute_command(
        "RL.MULTI", len(keys), *keys,
        *("TB", 10, 5, 1),               # 5 per second, bursts of 10
        *("SW", 12, 86400, "FIXED"),     # 12 per day
        *("CL", 99, 100, 60),            # 100 per minute from one address
        "WITHDETAILS",
    )  # fmt: skip
    if not binding[0]:
        return None
    key = next(key for key, reply in zip(keys, each) if reply[0])
    return f"{key}, retry after {binding[3]} s"


def main():
    client = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
    client.delete("bob:second", "bob:day", "ip:192.0.2.7")
    passed = 0
    while (refused := allow(client, "bob", "192.0.2.7")) is None:
        passed += 1
    print(passed, "passed, then", refused)
    address = client.execute_command("CL.THROTTLE", "ip:192.0.2.7", 99, 100, 60, 0)
    print(address[2], "left for the address")


if __name__ == "__main__":
    main()
