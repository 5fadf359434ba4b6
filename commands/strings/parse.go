package strings

import (
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// setCall has the options of SET and GETEX.
type setCall struct {
	nx, xx, get      bool
	keepTTL, persist bool

	expiry   []byte // not parsed yet; nil if there is none
	unit     time.Duration
	absolute bool
	word     string // which of the four options it was
}

// expiryOptions are the options for the expiry of a string.
var expiryOptions = []struct {
	word     string
	unit     time.Duration
	absolute bool
}{
	{"EX", time.Second, false},
	{"PX", time.Millisecond, false},
	{"EXAT", time.Second, true},
	{"PXAT", time.Millisecond, true},
}

// parseSet parses the arguments after the value of SET.
func parseSet(args [][]byte) (call setCall, err resp.Error) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case arg.IsWord(a, "NX") && !call.xx:
			call.nx = true
		case arg.IsWord(a, "XX") && !call.nx:
			call.xx = true
		case arg.IsWord(a, "GET"):
			call.get = true
		case arg.IsWord(a, "KEEPTTL") && call.expiry == nil:
			call.keepTTL = true
		case !call.keepTTL && call.takeExpiry(args[i:]):
			i++
		default:
			return call, resp.ErrSyntax
		}
	}
	return call, ""
}

// parseGetex parses the arguments after the key of GETEX.
func parseGetex(args [][]byte) (call setCall, err resp.Error) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case arg.IsWord(a, "PERSIST") && call.expiry == nil:
			call.persist = true
		case !call.persist && call.takeExpiry(args[i:]):
			i++
		default:
			return call, resp.ErrSyntax
		}
	}
	return call, ""
}

// takeExpiry parses an expiry option and its number at the front of args, and reports whether
// there was one. The same option may be repeated, and the last one counts. Two different options
// are refused.
func (call *setCall) takeExpiry(args [][]byte) bool {
	if len(args) < 2 {
		return false
	}
	for i := range expiryOptions {
		o := &expiryOptions[i]
		if arg.IsWord(args[0], o.word) && (call.expiry == nil || call.word == o.word) {
			call.expiry, call.unit, call.absolute, call.word = args[1], o.unit, o.absolute, o.word
			return true
		}
	}
	return false
}

// futureInstant converts the expiry of a command that sets a string into an instant. The number
// has to be positive; an absolute one may be in the past.
func futureInstant(c *command.Call, text []byte, unit time.Duration, absolute bool) (limit.Instant, resp.Error) {
	n, ok := arg.Int(text)
	if !ok {
		return 0, resp.ErrNotInteger
	}
	at, ok := command.ExpiryInstant(c.Store, n, unit, absolute)
	if !ok || n <= 0 {
		return 0, resp.Error("ERR invalid expire time in '" + c.Cmd.Name + "' command")
	}
	return min(at, limit.MaxInstant-1), ""
}

var zeroText = []byte("0")
