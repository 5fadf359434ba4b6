"""What the sync and the asyncio limiter share: options, decisions without the server, and the meaning of answers."""

from __future__ import annotations

import logging
import os
import random
import re
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypedDict

from . import headers, metrics, wire
from .breaker import Breaker, BreakerOptions, Ticket
from .cache import DenialCache
from .clauses import parse
from .errors import ANSWERS, ConfigurationError, KeyFault, ServerFault, Unavailable, judge, text_of
from .keys import Key, bounded, encodable
from .local import LocalLimiter, binding
from .result import NOT_LIMITED, Result, repeated, result_of

log = logging.getLogger("cellserver_client")

Cost = int | Callable[[Any], int]
Number = int | Callable[[], int]
Text = str | Callable[[Any], str]

MIN_DEADLINE, MAX_DEADLINE = 0.020, 1.0
"""The bounds of the option deadline, in seconds."""

POLICY_REFRESH = 60.0
"""The seconds after which the limits of a policy are read again for the limiter in the process."""

_LOG_EVERY = 60.0

# The time without an outage after which the limiter in the process is dropped, in seconds. If it were dropped at the first
# answer, each lost reply among others would begin with unused limits.
_FORGET_AFTER = 60.0
_MODES = ("allow", "deny", "local")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


class Call:
    """A call to the server that is under way."""

    __slots__ = (
        "cost",
        "deadline",
        "id",
        "key",
        "member",
        "peek",
        "scope",
        "started",
        "target",
        "ticket",
        "tried",
        "ttl_ms",
        "words",
    )

    def __init__(
        self, target: wire.Target, words: list[str], key: str, cost: int, member: str, started: float, deadline: float
    ) -> None:
        self.target = target
        self.words = words
        self.key = key
        self.cost = cost
        self.member = member
        self.id = ""
        self.ticket: Ticket | None = None
        self.started = started
        self.deadline = deadline
        self.ttl_ms = 0
        """The milliseconds for which the call reserves its units, or 0."""
        self.peek = False
        """Whether the call charges nothing."""
        self.scope: object = None
        """What a denial is remembered by. None if it is not."""
        self.tried = False

    def packed(self) -> bytes:
        """The words as the server takes them. pack_command of redis-py is for any type, and takes longer."""
        out = [f"*{len(self.words)}\r\n"]
        out += [f"${len(word) if word.isascii() else len(word.encode())}\r\n{word}\r\n" for word in self.words]
        return "".join(out).encode()


class Shared:
    """What the limiters of one address share: the breaker, the clocks and the log."""

    def __init__(
        self, options: BreakerOptions, clock: Callable[[], float], wall: Callable[[], int], metrics: metrics.Metrics
    ) -> None:
        self._options = options
        self.clock = clock
        self.wall = wall
        self.metrics = metrics
        self._logged: dict[str, float] = {}
        self.renew()
        _all_shared.add(self)

    def renew(self) -> None:
        """Begins anew after a fork: threads of the parent may hold the lock and the probe of the breaker for ever."""
        self.lock = threading.Lock()
        self.breaker = Breaker(self._options, random.random)

    def say(self, kind: str, level: int, message: str, *args: object) -> None:
        """Logs at most one line a minute of each kind."""
        now = self.clock()
        last = self._logged.get(kind)
        if last is None or now - last >= _LOG_EVERY:
            self._logged[kind] = now
            log.log(level, message, *args)


_all_shared: weakref.WeakSet[Shared] = weakref.WeakSet()


def _renew_all() -> None:
    for shared in _all_shared:
        shared.renew()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_renew_all)


class _Needed(TypedDict):
    key: Key
    on_unavailable: str


class Options(_Needed, total=False):
    """The options that both limiters have. BaseLimiter has their defaults, and the README says what they mean."""

    policy: str
    limits: str | Iterable[str]
    cost: Cost
    deadline: float
    instances: Number | None
    fallback: str | Iterable[str]
    denial_cache: float
    ban: bool
    id: Text | None
    retry: bool
    member: Text
    class_: str
    keep: str
    headers: str


def changed(options: Options, changes: dict[str, Any]) -> dict[str, Any]:
    """The options of a limiter that another one makes by using(). limits excludes policy."""
    if "limits" in changes or "policy" in changes:
        changes = {"limits": (), "policy": "", "fallback": ()} | changes
    return {**options, **changes}


class BaseLimiter:
    """The options of a limiter and its decisions. See sync.Limiter and aio.Limiter."""

    def __init__(
        self,
        *,
        key: Key,
        on_unavailable: str,
        policy: str = "",
        limits: str | Iterable[str] = (),
        cost: Cost = 1,
        deadline: float = 0.050,
        instances: Number | None = None,
        fallback: str | Iterable[str] = (),
        denial_cache: float = 1.0,
        ban: bool = False,
        id: Text | None = None,
        retry: bool = False,
        member: Text = "",
        class_: str = "",
        keep: str = "",
        headers: str = "draft",
        shared: Shared,
    ) -> None:
        clauses = parse(limits) if limits else ()
        self.target = wire.Target(policy or ("limit" if clauses else ""), clauses, class_, keep)
        self.headers = headers
        self._key, self._cost, self._member = key, cost, member
        self._deadline, self._on_unavailable = deadline, on_unavailable
        self._instances, self._numbers = instances, parse(fallback) if fallback else clauses
        self._reads_policy = on_unavailable == "local" and not self._numbers
        self._read_at: float | None = None
        self._id, self._retry = id, retry
        self._with_id = bool(id or retry)
        self._shared = shared
        self._cache: DenialCache[Result] = DenialCache(0 if ban else denial_cache)
        self._cap = 0.0 if ban else denial_cache
        self._local: LocalLimiter | None = None
        self._local_at = 0.0
        self._answered = False
        self._validate(policy)

    def _validate(self, policy: str) -> None:
        if not policy and not self.target.clauses:
            raise ConfigurationError("a limiter needs policy='name' or limits='TB 200 100 1'")
        if not _NAME.match(self.target.policy):
            # The server has the same rule, and the name is in header fields.
            raise ConfigurationError(f"policy is 1 to 64 of A-Z, a-z, 0-9, '_', '.' and '-', not {policy!r}")
        if self._on_unavailable not in _MODES:
            raise ConfigurationError(f"on_unavailable is allow, deny or local, not {self._on_unavailable!r}")
        if not MIN_DEADLINE <= self._deadline <= MAX_DEADLINE:
            raise ConfigurationError(f"deadline is {MIN_DEADLINE} to {MAX_DEADLINE} seconds, not {self._deadline}")
        if self.headers not in headers.STYLES:
            raise ConfigurationError(f"headers is one of {', '.join(headers.STYLES)}, not {self.headers!r}")
        if self._on_unavailable == "local" and self._instances is None:
            raise ConfigurationError("on_unavailable='local' needs instances, the number of processes that share the limit")
        if isinstance(self._instances, int) and self._instances < 1:
            raise ConfigurationError(f"instances is 1 or more, not {self._instances}")
        if any(clause.concurrent for clause in self.target.clauses) and not self._member:
            raise ConfigurationError("a limit of CC needs member")
        # What inline limits cannot do is an error here, and not at the first call.
        wire.words(self.target, wire.START_KEY)

    # What follows decides without waiting. A subclass sends the calls that _begin returns and passes the outcome on to _end.

    def _begin(self, request: Any, key: str | None, cost: int | None, ttl_ms: int = 0, peek: bool = False) -> Call | Result:
        """Decides a call from memory or by the breaker, or returns it to be sent.

        With ttl_ms it reserves its units, with peek it charges none.
        """
        if key is None:
            key = self._key(request)
            if key is None:
                return NOT_LIMITED
        key = bounded(_checked("key", key))
        if cost is None:
            cost = self._cost_of(request)
        member = self._member
        if not isinstance(member, str):
            member = encodable(_checked("member", member(request)))
        shared = self._shared
        now = shared.clock()
        scope = None if ttl_ms or peek else (key, member)
        with shared.lock:
            if cost > 0 and scope is not None:
                found = self._cache.find(scope, cost, now)
                if found is not None:
                    return self._decided(repeated(*found))
        # The function of the application comes before the ticket of the breaker, which has to be given back.
        id = self._new_id(request) if (self._with_id and not peek) or ttl_ms else ""
        with shared.lock:
            ticket = shared.breaker.begin(now)
            if not ticket.allowed:
                return self._away(key, cost, member, "breaker", peek)
        try:
            words = wire.words(self.target, key, cost, mode="PEEK" if peek else "", member=member, id=id, ttl_ms=ttl_ms)
        except BaseException:
            self._give_back(ticket)
            raise
        call = Call(self.target, words, key, cost, member, now, now + self._deadline)
        call.id, call.ticket, call.ttl_ms, call.peek, call.scope = id, ticket, ttl_ms, peek, scope
        return call

    def _cost_of(self, request: Any) -> int:
        return self._cost if isinstance(self._cost, int) else _charge(self._cost(request))

    def _new_id(self, request: Any) -> str:
        return encodable(_checked("id", self._id(request))) if callable(self._id) else os.urandom(16).hex()

    def _end(self, call: Call, outcome: Any) -> Call | Result:
        """Decides a call by its reply or error. A call that is returned is sent again."""
        shared = self._shared
        now = shared.clock()
        if isinstance(outcome, Unavailable):
            if outcome.broken and call.id and not call.tried and now < call.deadline:
                call.tried = True
                return call
            return self._failed(call, now, outcome.reason)
        shared.metrics.duration(now - call.started)
        if isinstance(outcome, BaseException):
            return self._refused(call, now, text_of(outcome))
        try:
            reply = wire.read(outcome, self.target.clauses or self._numbers)
        except ValueError as error:
            self._note(call, now, "answered")
            raise ServerFault("ERR", str(error)) from None
        result = result_of(self.target.policy, reply, call.cost)
        with shared.lock:
            self._note(call, now, "answered")
            self._answered = True
            if self._local is not None and now - self._local_at > _FORGET_AFTER:
                self._local = None
            if not result.allowed and call.scope is not None:
                limit = min(clause.limit for clause in result.policies)
                self._cache.store(call.scope, call.cost, limit, result.retry_after, now, result)
        return self._decided(result)

    def _refused(self, call: Call, now: float, text: str) -> Call | Result:
        """Decides a call that the server has answered with an error."""
        verdict, failure = judge(text, started=self._answered, has_id=bool(call.id) and not call.ttl_ms)
        code = text.split(" ", 1)[0]
        if failure:
            return self._failed(call, now, code.lower())
        if verdict == "without-id":
            self._with_id = False
            log.warning("the server is too old for ID: calls are not tried again")
            call.id = ""
            call.words = wire.words(self.target, call.key, call.cost, member=call.member)
            return call
        with self._shared.lock:
            self._note(call, now, "answered")
        if verdict == "raise":
            # The text is the server's and has no key of a client but in errors of arguments, which are left out.
            log.error("the server refuses a limiter: policy=%s code=%s", self.target.policy, code)
            if code in ("NOPOLICY", "NOPERM", "NOAUTH", "WRONGPASS"):
                raise ConfigurationError(text)
            raise ServerFault(code, text)
        if verdict == "misconfigured":
            self._shared.say(
                code,
                logging.ERROR,
                "the server refuses a limiter, and on_unavailable decides: policy=%s code=%s",
                self.target.policy,
                code,
            )
        self._shared.metrics.unavailable(code.lower())
        with self._shared.lock:
            return self._away(call.key, call.cost, call.member, code.lower(), call.peek)

    def _failed(self, call: Call, now: float, reason: str) -> Result:
        self._shared.metrics.unavailable(reason)
        with self._shared.lock:
            self._note(call, now, "failed")
            return self._away(call.key, call.cost, call.member, reason, call.peek)

    def _note(self, call: Call, now: float, outcome: str) -> None:
        """Tells the breaker how a call has ended."""
        if call.ticket is None:
            return
        shared = self._shared
        closed = call.ticket.probe and outcome == "answered"
        if shared.breaker.end(call.ticket, now, outcome):
            if not call.ticket.probe:
                shared.metrics.breaker(1)
        elif closed and shared.breaker.state == "closed":
            shared.metrics.breaker(-1)
            log.warning("the server answers again")
        call.ticket = None

    def _give_back(self, ticket: Ticket | None) -> None:
        """Ends a call whose caller has gone."""
        if ticket is not None:
            with self._shared.lock:
                self._shared.breaker.end(ticket, self._shared.clock(), "abandoned")

    def _away(self, key: str, cost: int, member: str, reason: str, peek: bool) -> Result:
        """Decides without the server. The lock is held."""
        self._shared.say(
            "away",
            logging.WARNING,
            "the server is unavailable (%s), and on_unavailable=%s decides",
            reason,
            self._on_unavailable,
        )
        policy = self.target.policy
        if self._on_unavailable == "allow":
            return self._decided(Result(True, 0, 0, None, 0.0, "unavailable", policy))
        if self._on_unavailable == "deny" or not self._numbers:
            return self._decided(Result(False, 0, 0, 1.0, 1.0, "unavailable", policy))
        if self._local is None:
            instances = self._instances() if callable(self._instances) else self._instances
            self._local = LocalLimiter(self._numbers, self._shared.wall, instances=max(1, instances or 1))
        self._local_at = self._shared.clock()
        answers = self._local.check(key, cost, member, peek=peek)
        whole = binding(answers)
        reply = wire.Reply(int(whole.denies), whole, tuple(answers))
        return self._decided(result_of(policy, reply, cost, source="local"))

    def _decided(self, result: Result) -> Result:
        self._shared.metrics.decision(result.policy, "allowed" if result.allowed else "denied", result.source)
        return result

    # The end of a reservation. It raises nothing: the work that it paid for is done.

    def _settling(self, hold: Call, words: list[str]) -> Call | None:
        """The call that ends or renews a reservation. None while the breaker is open."""
        shared = self._shared
        now = shared.clock()
        with shared.lock:
            ticket = shared.breaker.begin(now)
        if not ticket.allowed:
            self._not_settled(words[0], "breaker")
            return None
        call = Call(self.target, words, hold.key, hold.cost, hold.member, now, now + self._deadline)
        call.id, call.ticket = hold.id, ticket
        return call

    def _settled(self, call: Call, outcome: Any) -> Call | int | None:
        """The answer of the server. A call that is returned is sent again, since it counts once; None is no answer."""
        now = self._shared.clock()
        if isinstance(outcome, Unavailable) and outcome.broken and not call.tried and now < call.deadline:
            call.tried = True
            return call
        if isinstance(outcome, int):
            with self._shared.lock:
                self._note(call, now, "answered")
            if outcome < 0:
                self._not_settled(call.words[0], "unknown")
            return outcome
        failure, reason = True, "answer"
        if isinstance(outcome, Unavailable):
            reason = outcome.reason
        elif isinstance(outcome, BaseException):
            text = text_of(outcome)
            failure, reason = judge(text, started=True, has_id=False)[1], text.split(" ", 1)[0]
        with self._shared.lock:
            self._note(call, now, "failed" if failure else "answered")
        self._not_settled(call.words[0], reason)
        return None

    def _not_settled(self, command: str, reason: str) -> None:
        self._shared.metrics.unavailable(reason.lower())
        self._shared.say(
            f"{command} {reason}",
            logging.WARNING,
            "a reservation is not settled, and ends at its time to live: command=%s reason=%s",
            command,
            reason,
        )

    # The check at the start, and the limits of a policy for the limiter in the process.

    def _start_calls(self) -> list[tuple[str, Call]]:
        """The calls of the check at the start."""
        now = self._shared.clock()
        out = []
        member = self._member if isinstance(self._member, str) else "start"
        checking = wire.start_words(self.target, member)
        if checking is not None:
            out.append(("use", Call(self.target, checking, wire.START_KEY, 0, member, now, now + MAX_DEADLINE)))
        if self._reads_policy:
            out.append(("get", Call(self.target, ["RL.POLICY", "GET", self.target.policy], "", 0, "", now, now + MAX_DEADLINE)))
        return out

    def _started(self, what: str, outcome: Any) -> None:
        """Judges an answer of the check at the start. Raises LimiterError."""
        if isinstance(outcome, Unavailable):
            if what == "get":
                raise ConfigurationError(
                    f"on_unavailable='local' has no limits of {self.target.policy!r}, since the server is unavailable "
                    f"({outcome.reason}): give fallback='TB ...'"
                )
            log.warning("the server is unavailable at the start (%s)", outcome.reason)
        elif isinstance(outcome, BaseException):
            text = text_of(outcome)
            verdict, _ = judge(text, started=False, has_id=False)
            if verdict == "raise" or what == "get":
                raise ConfigurationError(text)
            log.warning("the server is unavailable at the start (%s)", text.split(" ", 1)[0])
        elif what == "get":
            self._read_policy(outcome)
        else:
            self._answered = True

    def _wants_policy(self) -> bool:
        """Whether the limits of the policy are to be read again now. A true answer is given once a minute."""
        if not self._reads_policy:
            return False
        now = self._shared.clock()
        if self._read_at is not None and now - self._read_at < POLICY_REFRESH:
            return False
        self._read_at = now
        return True

    def _read_policy(self, reply: Any) -> None:
        """Takes the limits from an answer of RL.POLICY GET. Raises ConfigurationError."""
        fields: dict[str, Any] = {}
        if isinstance(reply, dict):
            fields = {_plain(name): value for name, value in reply.items()}
        elif isinstance(reply, list):
            fields = {_plain(name): value for name, value in zip(reply[::2], reply[1::2])}
        limits = fields.get("limits", ())
        texts = limits if isinstance(limits, list) else [limits]
        numbers = parse(map(_plain, texts), ms=_plain(fields.get("ms", 0)) == "1")
        self._read_at = self._shared.clock()
        if numbers != self._numbers:
            self._numbers, self._local = numbers, None


def _checked(what: str, text: Any) -> str:
    """What a function of the options has returned. Raises KeyFault unless it is a text."""
    if not isinstance(text, str):
        raise KeyFault(f"{what} is a text, not a {type(text).__name__}")
    return text


def _charge(cost: Any) -> int:
    """What the function cost has returned. Raises ConfigurationError: less than 0 would give units back to a client."""
    if not isinstance(cost, int) or cost < 0:
        raise ConfigurationError(f"cost returns a whole number of 0 or more, not {cost!r}")
    return cost


def _plain(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def is_answer(error: BaseException) -> bool:
    """Whether redis-py has raised an error that the server has answered."""
    return isinstance(error, ANSWERS)
