"""Errors that the package raises, and what the errors of a server mean."""

from __future__ import annotations

from redis import exceptions as redis_errors


class LimiterError(Exception):
    """The base of all errors of this package. An unavailable server is none of them: see on_unavailable."""


class ConfigurationError(LimiterError):
    """An option that is missing or wrong, or a policy or permission that the server lacks at the start."""


class KeyFault(LimiterError):
    """A request from which no key can be made, such as one without a peer's address, or a key, member or ID that is no text."""


class ServerFault(LimiterError):
    """An answer that is a fault of the program, such as WRONGTYPE or a syntax error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unavailable(Exception):
    """The reason for which there is no decision of the server. It stays inside the package.

    broken says that the connection has ended before the answer, so that a call with an ID may be tried again.
    """

    def __init__(self, reason: str, *, broken: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.broken = broken


# An answer with one of these codes is no decision: the server is away for this call.
UNAVAILABLE_CODES = frozenset(
    [
        "LOADING",
        "READONLY",
        "MASTERDOWN",
        "OOM",
        "BUSY",
        "UNAVAILABLE",
        "MISCONF",
        "NOREPLICAS",
        "CLUSTERDOWN",
        "TRYAGAIN",
        "IDENDED",
    ]
)
# These codes are errors of the configuration at the start. Later they are as if the server were away.
CONFIGURATION_CODES = frozenset(["NOPOLICY", "NOPERM", "NOAUTH", "WRONGPASS"])
_MAX_CLIENTS = "ERR max number of clients reached"

# redis-py removes the codes that it knows from the message and has a class for each. Subclasses come first.
_CLASSES: tuple[tuple[str, str], ...] = (
    ("BusyLoadingError", "LOADING"),
    ("ReadOnlyError", "READONLY"),
    ("MasterDownError", "MASTERDOWN"),
    ("ClusterDownError", "CLUSTERDOWN"),
    ("TryAgainError", "TRYAGAIN"),
    ("OutOfMemoryError", "OOM"),
    ("NoPermissionError", "NOPERM"),
    ("AuthenticationWrongNumberOfArgsError", "ERR"),
    ("AuthorizationError", "NOAUTH"),
    ("AuthenticationError", "NOAUTH"),
)
_BY_CLASS: tuple[tuple[type[BaseException], str], ...] = tuple(
    (getattr(redis_errors, name), code) for name, code in _CLASSES if hasattr(redis_errors, name)
)
# Errors that are answers, although redis-py derives some of them from ConnectionError.
ANSWERS: tuple[type[BaseException], ...] = (redis_errors.ResponseError, *(kind for kind, _ in _BY_CLASS))


def text_of(error: BaseException) -> str:
    """The text of an error that a server has answered, which begins with its code, such as NOPOLICY."""
    text = str(error)
    word = text.split(" ", 1)[0]
    if word.isascii() and word.isupper() and word.isalpha() and len(word) > 2:
        return text
    for kind, code in _BY_CLASS:
        if isinstance(error, kind):
            return f"{code} {text}"
    return f"ERR {text}"


def judge(text: str, *, started: bool, has_id: bool) -> tuple[str, bool]:
    """What is done about an error that a server has answered, and whether it is a failure for the breaker.

    unavailable: on_unavailable decides. misconfigured: likewise, with an error in the log. raise: the error is a fault
    of the program, or of the configuration at the start. without-id: the server is too old for ID.
    """
    code = text.split(" ", 1)[0]
    if text == _MAX_CLIENTS or code in UNAVAILABLE_CODES:
        return "unavailable", code != "IDENDED"
    if code in CONFIGURATION_CODES:
        return ("misconfigured" if started else "raise"), False
    if has_id and _too_old(text):
        return "without-id", False
    return "raise", False


def _too_old(text: str) -> bool:
    start = "ERR syntax error"
    return text == start or text.startswith(start + " near 'ID'")
