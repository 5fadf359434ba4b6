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

// ElementError carries an error reply as an error value through a function of the store.
type ElementError resp.Error

// Error implements the error interface.
func (e ElementError) Error() string { return string(e) }

// ErrNoSum refuses a sum that is not a finite number.
const ErrNoSum resp.Error = "ERR increment would produce NaN or Infinity"

// FloatError returns the reply for an error of a floating-point addition.
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

// MaxEcho is how many bytes of an unknown name, and how many of its arguments together, the error
// repeats (Redis: 128).
const MaxEcho = 128

// notServed returns the error for a command that needs a keyspace, which a server with --store
// does not have.
func notServed(name string) resp.Error {
	if strings.HasPrefix(name, "rl.") { // no Redis or Valkey has these commands
		return resp.Error("ERR '" + name + "' is not served with --store")
	}
	return resp.Error("ERR '" + name + "' is not served with --store; ask the store itself")
}

// unknownCommand returns the error for a command that does not exist. It repeats the beginning of
// the arguments.
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

// unknownSubcommand returns the error for a subcommand that does not exist.
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

// ErrBusy refuses a command while a script has blocked the store for longer than
// busy-reply-threshold.
const ErrBusy resp.Error = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."

// ErrScriptReply refuses a reply that is too long for a script.
const ErrScriptReply resp.Error = "ERR the reply is too large for a script"

// MaxScriptReply bounds the bytes of a reply to a script.
const MaxScriptReply = 16 << 20

// ErrLongReply is [ErrValuesTooLong] as an error value, for functions that the store calls.
var ErrLongReply = ElementError(ErrValuesTooLong)

// NoPolicy returns the error for a policy that does not exist.
func NoPolicy(name []byte) resp.Error {
	return resp.Error("NOPOLICY No such policy '" + string(Echo(name, MaxEcho)) + "'")
}

// StoreError returns the reply for an error of the store.
func StoreError(err error) resp.Error {
	if reason, ok := err.(decide.Unavailable); ok { //nolint:errorlint // no caller wraps it
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

// ErrValuesTooLong refuses a reply whose values together exceed [MaxReply].
const ErrValuesTooLong resp.Error = "ERR the reply is too long"

// ErrNotKept stands for an error of the journal until [Call.Fail] replaces it with the exact
// reason.
const ErrNotKept resp.Error = "MISCONF"

// errManyEffects refuses a transaction whose record would be too large.
const errManyEffects resp.Error = "ERR the transaction changes too much to be kept as one record"

// Misconf returns the error for an effect that cannot be persisted. fault is "" if the fault is
// already over when the error is written.
func Misconf(fault string) resp.Error {
	if fault == "" {
		fault = "what was written last is lost"
	}
	return resp.Error("MISCONF Errors writing to the AOF file: " + fault)
}
