package command

import (
	"errors"
	"strings"

	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/longdouble"
	"github.com/cellserver/cellserver/resp"
)

// ElementError carries a reply through a function of the store.
type ElementError resp.Error

// Error implements error.
func (e ElementError) Error() string { return string(e) }

// ErrNoSum refuses a sum that is no finite number.
const ErrNoSum resp.Error = "ERR increment would produce NaN or Infinity"

// FloatError is the reply to an error of a sum of floats.
func FloatError(err error) resp.Error {
	switch {
	case errors.Is(err, longdouble.ErrNotFloat):
		return resp.ErrNotFloat
	case errors.Is(err, longdouble.ErrNotFinite):
		return ErrNoSum
	}
	return StoreError(err)
}

// ErrKeyTooLong refuses a key of more than [MaxKey] bytes.
const ErrKeyTooLong resp.Error = "ERR key is too long, at most 16384 bytes"

// MaxEcho is how much of an unknown name, and of the arguments together, is
// repeated in the error (Redis: 128).
const MaxEcho = 128

// notServed refuses a command for which there is no keyspace here.
func notServed(name string) resp.Error {
	if strings.HasPrefix(name, "rl.") { // which no store has
		return resp.Error("ERR '" + name + "' is not served with --store")
	}
	return resp.Error("ERR '" + name + "' is not served with --store; ask the store itself")
}

// unknownCommand is the error for a command that does not exist. It repeats a part of its words.
func unknownCommand(args [][]byte) resp.Error {
	b := append([]byte("ERR unknown command '"), Echo(args[0], MaxEcho)...)
	b = append(b, "', with args beginning with: "...)
	shown := 0
	for _, a := range args[1:] {
		if shown >= MaxEcho {
			break
		}
		a = Echo(a, MaxEcho-shown)
		b = append(append(append(b, '\''), a...), "' "...)
		shown += len(a) + len("'' ")
	}
	return resp.Error(b)
}

// unknownSubcommand is the error for a subcommand that does not exist.
func unknownSubcommand(container string, name []byte) resp.Error {
	return resp.Error("ERR unknown subcommand '" + string(Echo(name, MaxEcho)) + "'. Try " + upper(container) + " HELP.")
}

// Echo returns at most n bytes of b, up to its first NUL, as C prints strings.
func Echo(b []byte, n int) []byte {
	if len(b) > n {
		b = b[:n]
	}
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}

func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - ('a' - 'A')
		}
	}
	return string(b)
}

// ErrPatternTooLong refuses a pattern of more than glob.MaxPattern bytes.
const ErrPatternTooLong resp.Error = "ERR pattern is too long, at most 1024 bytes"

// ErrReplyTooLong refuses a reply of more than [MaxReply] bytes.
const ErrReplyTooLong resp.Error = "ERR the reply is too long, use SCAN with a smaller COUNT"

// ErrBusy refuses a command while a script keeps others out of the store for long.
const ErrBusy resp.Error = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."

// ErrScriptReply refuses a reply that is too long for a script.
const ErrScriptReply resp.Error = "ERR the reply is too large for a script"

// MaxScriptReply is the longest reply that a script may be given.
const MaxScriptReply = 16 << 20

// ErrLongReply is [TooLong] on its way through the store.
var ErrLongReply = ElementError(ErrValuesTooLong)

// NoPolicy refuses a call about a policy that there is not.
func NoPolicy(name []byte) resp.Error {
	return resp.Error("NOPOLICY No such policy '" + string(Echo(name, MaxEcho)) + "'")
}

// StoreError is the reply to what the store could not do.
func StoreError(err error) resp.Error {
	if reason, ok := err.(decide.Unavailable); ok { //nolint:errorlint // nobody wraps it
		return resp.Error("UNAVAILABLE " + string(reason))
	}
	for _, known := range storeErrors {
		if errors.Is(err, known.err) {
			return known.text
		}
	}
	return resp.ErrInternal
}

var storeErrors = []struct {
	err  error
	text resp.Error
}{
	{limit.ErrWrongType, resp.ErrWrongType},
	{limit.ErrNotInteger, resp.ErrNotInteger},
	{limit.ErrOverflow, resp.ErrOverflow},
	{limit.ErrRateTooHigh, resp.ErrRateTooHigh},
	{limit.ErrFull, resp.ErrOOM},
	{limit.ErrSumOverflow, resp.ErrSumOverflow},
	{limit.ErrTooLong, resp.ErrStringTooLong},
	{limit.ErrNotKept, ErrNotKept},
	{limit.ErrTooManyMembers, resp.ErrTooManyLeases},
	{limit.ErrTooLarge, resp.ErrStateTooLarge},
	{decide.ErrCrossSlot, resp.ErrCrossSlot},
	{longdouble.ErrNotFloat, resp.ErrNotFloat},
	{counter.ErrAppliedOverflow, resp.ErrAppliedOverflow},
	{counter.ErrAppliedInfinite, resp.ErrAppliedInfinite},
	{counter.ErrInfinite, resp.ErrInfinite},
}

// ErrValuesTooLong refuses values that are too long together for a script.
const ErrValuesTooLong resp.Error = "ERR the reply is too long"

// ErrNotKept stands for the fault of the journal until it is known which.
const ErrNotKept resp.Error = "MISCONF"

// errManyEffects refuses what would make the record of a transaction too large.
const errManyEffects resp.Error = "ERR the transaction changes too much to be kept as one record"

// Misconf refuses what cannot be kept. Where the fault is over by the time that it is to
// be named, fault is "".
func Misconf(fault string) resp.Error {
	if fault == "" {
		fault = "what was written last is lost"
	}
	return resp.Error("MISCONF Errors writing to the AOF file: " + fault)
}
