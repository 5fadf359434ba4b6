"""Several limits at once: per second and per day of a user, and per address.

Either all of them are charged, or none. Needs redis-py. REDIS_URL says where the
server is (redis://127.0.0.1:6379).
"""

import os

import redis


def charge(client, user, address):
    """Charges all three limits, or none. Returns the binding reply, and each limit's own."""
    keys = [f"{user}:second", f"{user}:day", f"ip:{address}"]
    binding, each = client.execute_command(
        "RL.MULTI", len(keys), *keys,
        *("TB", 10, 5, 1),               # 5 per second, bursts of 10
        *("SW", 12, 86400, "FIXED"),     # 12 per day
        *("CL", 99, 100, 60),            # 100 per minute from one address
        "WITHDETAILS",
    )  # fmt: skip
    return binding, dict(zip(("second", "day", "address"), each))


def headers(binding, each):
    """What to answer with: remaining and reset of one limit, side by side."""
    resets = {name: r[3] if r[0] else r[4] for name, r in each.items()}
    found = {"RateLimit": ", ".join(f'"{name}";r={r[2]};t={resets[name]}' for name, r in each.items())}
    if binding[0]:
        found["Retry-After"] = str(binding[3])  # the longest of those in the way
    return found


def main():
    client = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
    client.delete("bob:second", "bob:day", "ip:192.0.2.7")
    passed = 0
    binding, each = charge(client, "bob", "192.0.2.7")
    while not binding[0]:
        passed += 1
        binding, each = charge(client, "bob", "192.0.2.7")
    print(passed, "passed, then", *(name for name, reply in each.items() if reply[0]))
    for name, value in headers(binding, each).items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
