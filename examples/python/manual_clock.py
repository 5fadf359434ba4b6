"""Tests of limits that take no time: the server was started with --clock manual.

Needs redis-py. REDIS_URL says where the server is (redis://127.0.0.1:6379).
"""

import os
import uuid

import redis


def may_log_in(client, user):
    """Counts an attempt: five a minute."""
    return client.execute_command("SW.ALLOW", f"login:{user}", 5, 60, "LOG")[0] == 0


def may_export(client, user):
    """Counts an export: one a calendar month."""
    return client.execute_command("SW.ALLOW", f"export:{user}", 1, "MONTH")[0] == 0


def pass_time(client, duration):
    client.execute_command("DEBUG", "CLOCK", "ADD", duration)


def test_five_attempts_a_minute(client, user):
    assert all(may_log_in(client, user) for _ in range(5))
    pass_time(client, "59s")
    assert not may_log_in(client, user)
    pass_time(client, "1s")
    assert may_log_in(client, user)


def test_one_export_a_month(client, user):
    assert may_export(client, user)
    wait = client.execute_command("SW.ALLOW", f"export:{user}", 1, "MONTH")[3]
    assert 0 < wait <= 31 * 86400
    pass_time(client, f"{wait}s")
    assert may_export(client, user)


def main():
    client = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
    for test in test_five_attempts_a_minute, test_one_export_a_month:
        test(client, uuid.uuid4())
        print(test.__name__, "passed")


if __name__ == "__main__":
    main()
