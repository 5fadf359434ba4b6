package resp

import "strings"

// Error is the text of an error reply without the leading '-'. It begins with the code, as in "ERR
// syntax error". The empty Error means success, so that functions can return an Error without
// allocating.
type Error string

// Error returns the text. It implements error.
func (e Error) Error() string { return string(e) }

// Word returns the first word of e, such as NOPERM, by which clients tell errors apart.
func (e Error) Word() string {
	word, _, _ := strings.Cut(string(e), " ")
	return word
}

// These are error texts of Redis, byte for byte, since clients compare them.
const (
	ErrSyntax          Error = "ERR syntax error"
	ErrNotInteger      Error = "ERR value is not an integer or out of range"
	ErrNotFloat        Error = "ERR value is not a valid float"
	ErrAppliedOverflow Error = "ERR applied increment would overflow"
	ErrAppliedInfinite Error = "ERR applied increment would be Infinity"
	ErrInfinite        Error = "ERR value cannot be Infinity"
	ErrBoundsCrossed   Error = "ERR LBOUND can't be greater than UBOUND"
	ErrExpiryMissing   Error = "ERR ENX flag requires an expiration"
	ErrSumOverflow     Error = "ERR increment or decrement would overflow"
	ErrStringTooLong   Error = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	ErrNotPositive     Error = "ERR value is out of range, must be positive"
	ErrWrongType       Error = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrNoSuchKey       Error = "ERR no such key"
	ErrDBIndex         Error = "ERR DB index is out of range"
	ErrOOM             Error = "OOM command not allowed when used memory > 'maxmemory'."
	ErrNoAuth          Error = "NOAUTH Authentication required."
	ErrNoAuthHello     Error = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	ErrWrongPass       Error = "WRONGPASS invalid username-password pair or user is disabled."
	ErrNoPassword      Error = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	ErrNoProto         Error = "NOPROTO unsupported protocol version"
	ErrProtoNotInteger Error = "ERR Protocol version is not an integer or out of range"
	ErrMaxClients      Error = "ERR max number of clients reached"
	ErrTimeoutNegative Error = "ERR timeout is negative"
	ErrTimeoutNotFloat Error = "ERR timeout is not a float or out of range"
	ErrClusterDisabled Error = "ERR This instance has cluster support disabled"
	ErrInvalidCursor   Error = "ERR invalid cursor"
	ErrInternal        Error = "ERR internal error"
)

// These are protocol errors. The connection is closed after them.
const (
	ErrTLS             Error = "ERR Protocol error: this port does not speak TLS. Connect without TLS, or to the port of the option tls-port"
	ErrMultibulkLength Error = "ERR Protocol error: invalid multibulk length"
	ErrBulkLength      Error = "ERR Protocol error: invalid bulk length"
	ErrInlineTooBig    Error = "ERR Protocol error: too big inline request"
	ErrMbulkCountBig   Error = "ERR Protocol error: too big mbulk count string"
	ErrBulkCountBig    Error = "ERR Protocol error: too big bulk count string"
	ErrUnbalanced      Error = "ERR Protocol error: unbalanced quotes in request"
	ErrUnauthMultibulk Error = "ERR Protocol error: unauthenticated multibulk length"
	ErrUnauthBulk      Error = "ERR Protocol error: unauthenticated bulk length"
	ErrCommandTooBig   Error = "ERR Protocol error: too big request"
)

// These are the error texts of the limiter commands.
const (
	ErrNumkeys      Error = "ERR numkeys should be greater than 0"
	ErrNumkeysArgs  Error = "ERR Number of keys can't be greater than number of args"
	ErrClauseCount  Error = "ERR number of clauses must match the number of keys"
	ErrDuplicateKey Error = "ERR duplicate key in 'rl.multi' command"
	// ErrNoZone and ErrNoStart are errors of a window that follows a calendar.
	ErrNoZone      Error = "ERR value is no time zone"
	ErrNoStart     Error = "ERR value is no start of a window"
	ErrLogTooLong  Error = "ERR limit exceeds sw-log-max-entries"
	ErrRateTooHigh Error = "ERR rate is too high, one token must take at least 1 ns"
	// ErrRateAdvice is the text of ErrRateTooHigh followed by advice for the user.
	ErrRateAdvice    Error = ErrRateTooHigh + ": count in larger units, such as KiB instead of bytes, or in a window (SW), which has no such bound"
	ErrOverflow      Error = "ERR capacity, count and period would overflow"
	ErrMemberTooLong Error = "ERR member is too long, at most 1024 bytes"
	ErrTooManyLeases Error = "ERR number of members exceeds cc-max-members"
	ErrUnconfirmed   Error = "UNCONFIRMED The change is in force, but no replica of the store has confirmed it: a failover may lose it"
	ErrCrossSlot     Error = "CROSSSLOT Keys in request don't hash to the same slot"
	ErrStatesApart   Error = "CROSSSLOT Several policies are charged in one slot: begin their keys with the same {tag}"
	ErrLeaseTooLong  Error = "ERR lease is too long"
	ErrNoMember      Error = "ERR a CC clause needs MEMBER"
	ErrTokenLength   Error = "ERR ID must have 1 to 64 bytes"
	ErrTokenReused   Error = "IDREUSED ID was used with other arguments"
	ErrReserveID     Error = "ERR the id of a reservation must have 1 to 64 bytes"
	ErrReserveEnded  Error = "IDENDED The reservation has ended"
	ErrReserveFamily Error = "ERR RESERVE is for TB GREEDY, SW and CC"
	ErrReserveLinked Error = "ERR with --store a transaction cannot settle a reservation of RL.MULTI or of several policies"
	ErrReserveStates Error = "ERR with --store a reservation of several policies is settled with POLICY"
	ErrReserveActual Error = "ERR actual is larger than the limiter can count"
	ErrReserveWarmup Error = "ERR a bucket with WARMUP cannot be charged beyond what was reserved"
	ErrReserveFirst  Error = "ERR the first limit of a reservation must be a window or a bucket, which its settlement names"
	ErrReserveKeys   Error = "ERR a reservation has at most 16 keys, with at most 65536 bytes in all"
	// ErrReserveNumbers is the error of RL.COMMIT with several numbers that the reservation does not have.
	ErrReserveNumbers Error = "ERR RL.COMMIT needs one number, or one for each TB and SW clause of the reservation"
	ErrStateTooLarge  Error = "ERR the state would exceed store-max-value"
)

// These are the error texts of the Redis module redis-cell, which do not begin with a code.
const (
	ErrCellUsage Error = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	ErrCellRate  Error = "Cell error: Store error: Zero rates are not supported"
	// CellNotIntegerPrefix is the beginning of the error for an argument that is not an integer.
	// The argument itself follows.
	CellNotIntegerPrefix = "Cell error: Store error: Couldn't parse as integer: "
)

// WrongArity returns the error for a call of the command called name, in lower case, with the wrong
// number of arguments.
func WrongArity(name string) Error {
	return Error("ERR wrong number of arguments for '" + name + "' command")
}
