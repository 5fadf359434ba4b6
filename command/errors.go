package command

import (
	"errors"
	"strings"

	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/longdouble"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/resp"
)

// ElementError carries an error reply as a Go error through a function that the store calls.
type ElementError resp.Error

// Error returns the text of the error reply.
func (e ElementError) Error() string { return string(e) }

// ErrNoSum is the reply to a floating-point addition whose sum is not a finite number.
const ErrNoSum resp.Error = "ERR increment would produce NaN or Infinity"

// FloatError returns the reply for err, an error of a floating-point addition or of the store.
func FloatError(err error) resp.Error {
	switch {
	case errors.Is(err, longdouble.ErrNotFloat):
		return resp.ErrNotFloat
	case errors.Is(err, longdouble.ErrNotFinite):
		return ErrNoSum
	}
	return StoreError(err)
}

// ErrKeyTooLong is the reply to a command with a key of more than [MaxKey] bytes.
const ErrKeyTooLong resp.Error = "ERR key is too long, at most 16384 bytes"

// MaxEcho is the maximum number of bytes of an unknown name that an error repeats. The arguments
// after the name have the same bound, all together. Redis has the bound 128, too.
const MaxEcho = 128

// notServed returns the error for the command called name that needs a keyspace, which a server
// with --store does not have.
func notServed(name string) resp.Error {
	if strings.HasPrefix(name, "rl.") { // a Redis or Valkey that serves as the store does not have these commands
		return resp.Error("ERR '" + name + "' is not served with --store")
	}
	return resp.Error("ERR '" + name + "' is not served with --store; ask the store itself")
}

// unknownCommand returns the error for a call of a command that does not exist. The error repeats
// the name, args[0], and the beginning of the other arguments.
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

func unknownSubcommand(container string, name []byte) resp.Error {
	return resp.Error("ERR unknown subcommand '" + string(Echo(name, MaxEcho)) + "'. Try " + upper(container) + " HELP.")
}

// Echo returns the first n bytes of b, or fewer if b is shorter or contains a NUL: C prints a
// string only up to its first NUL.
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

// ErrPatternTooLong is the reply to a pattern of more than MaxPattern bytes, a constant of package
// glob.
const ErrPatternTooLong resp.Error = "ERR pattern is too long, at most 1024 bytes"

// ErrReplyTooLong replaces a reply of KEYS or a similar command that exceeds [MaxReply] bytes.
const ErrReplyTooLong resp.Error = "ERR the reply is too long, use SCAN with a smaller COUNT"

// ErrBusy is the reply to a command while a script has blocked the store for longer than
// busy-reply-threshold.
const ErrBusy resp.Error = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."

// ErrScriptReply is the error that a script gets for a command whose reply is too long for scripts.
const ErrScriptReply resp.Error = "ERR the reply is too large for a script"

// MaxScriptReply is the maximum length, in bytes, of a reply to a command that a script calls.
const MaxScriptReply = 16 << 20

// ErrLongReply is [ErrValuesTooLong] as an error value, for functions that the store calls.
var ErrLongReply = ElementError(ErrValuesTooLong)

// NoPolicy returns the error for a policy called name that does not exist.
func NoPolicy(name []byte) resp.Error {
	return resp.Error("NOPOLICY No such policy '" + string(Echo(name, MaxEcho)) + "'")
}

// NoClass returns the error for a class called name that the policy called of does not have.
func NoClass(of string, name []byte) resp.Error {
	return resp.Error("NOCLASS No such class '" + string(Echo(name, MaxEcho)) + "' of policy '" + of + "'")
}

// StoreError returns the reply for err, an error of the store. The reply for an unknown error is
// [resp.ErrInternal].
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
	{decide.ErrReused, resp.ErrTokenReused},
	{reservation.ErrEnded, resp.ErrReserveEnded},
	{reservation.ErrFamily, resp.ErrReserveFamily},
	{reservation.ErrFirst, resp.ErrReserveFirst},
	{reservation.ErrKeys, resp.ErrReserveKeys},
	{reservation.ErrNumbers, resp.ErrReserveNumbers},
	{reservation.ErrActual, resp.ErrReserveActual},
	{reservation.ErrWarmup, resp.ErrReserveWarmup},
	{decide.ErrCrossSlot, resp.ErrCrossSlot},
	{decide.ErrLinked, resp.ErrReserveLinked},
	{decide.ErrOfStates, resp.ErrReserveStates},
	{decide.ErrStatesApart, resp.ErrStatesApart},
	{longdouble.ErrNotFloat, resp.ErrNotFloat},
	{counter.ErrAppliedOverflow, resp.ErrAppliedOverflow},
	{counter.ErrAppliedInfinite, resp.ErrAppliedInfinite},
	{counter.ErrInfinite, resp.ErrInfinite},
}

// ErrValuesTooLong replaces a reply of stored values that copies more than [MaxReply] bytes.
const ErrValuesTooLong resp.Error = "ERR the reply is too long"

// ErrNotKept stands for an error of the journal until [Call.Fail] replaces it with the exact
// reason.
const ErrNotKept resp.Error = "MISCONF"

// errManyEffects is the reply to a command of a transaction that would make the journal's record of
// the transaction too large.
const errManyEffects resp.Error = "ERR the transaction changes too much to be kept as one record"

// Misconf returns the error for an effect that cannot be persisted because of fault, the journal's
// description of its error. fault is "" if the error ended before the reply was written.
func Misconf(fault string) resp.Error {
	if fault == "" {
		fault = "what was written last is lost"
	}
	return resp.Error("MISCONF Errors writing to the AOF file: " + fault)
}
