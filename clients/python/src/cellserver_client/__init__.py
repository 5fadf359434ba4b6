"""Rate limits of cellserver in Python: one round trip, and an answer within a deadline whatever the server does.

The limiters are aio.Limiter and sync.Limiter; fastapi has the middleware and the dependency, testing the doubles.
"""

from .breaker import BreakerOptions
from .errors import ConfigurationError, KeyFault, LimiterError, ServerFault
from .keys import combine, first, header, ip, user
from .result import Result, respond

__version__ = "0.1.0"

__all__ = [
    "BreakerOptions",
    "ConfigurationError",
    "KeyFault",
    "LimiterError",
    "Result",
    "ServerFault",
    "combine",
    "first",
    "header",
    "ip",
    "respond",
    "user",
]
