"""A budget of LLM tokens per team: reserve an estimate, then commit the real cost.

Needs redis-py. REDIS_URL says where the server is (redis://127.0.0.1:6379).
"""

import os
import uuid

import redis

class OverBudget(Exception):
    """Raised before the model is called. retry_after is in seconds, -1 for never."""

    def __init__(self, retry_after):
        super().__init__(f"over budget, retry after {retry_after} s")
        self.retry_after = retry_after


BUDGET = (100_000, 100_000, 60)  # tokens at once, tokens per seconds
LONGEST = 600  # seconds after which the estimate of a crashed caller comes back


def complete(client, team, estimate, model):
    """Calls model, which returns an answer and the tokens it took."""
    key, call = f"llm:{team}", uuid.uuid4().hex
    limited, _, _, retry_after, _ = client.execute_command(
        "TB.ACQUIRE", key, *BUDGET, estimate, "RESERVE", call, LONGEST
    )
    if limited:
        raise OverBudget(retry_after)
    used = 0  # if the model fails, all of the estimate goes back
    try:
        answer, used = model()
        return answer
    finally:
        # More than the estimate is charged even if that overdraws the budget: the
        # next calls wait for it. Less is given back.
        client.execute_command("RL.COMMIT", key, call, used)


def main():
    client = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
    client.delete("llm:research")

    def left():
        reply = client.execute_command("TB.ACQUIRE", "llm:research", *BUDGET, 0)
        return f"{reply[2]} left, full in {reply[4]} s"

    print(complete(client, "research", 20_000, lambda: ("short answer", 4_500)), "-", left())
    print(complete(client, "research", 20_000, lambda: ("long answer", 110_000)), "-", left())
    try:
        complete(client, "research", 20_000, lambda: ("not called", 0))
    except OverBudget as over:
        print(over)


if __name__ == "__main__":
    main()
