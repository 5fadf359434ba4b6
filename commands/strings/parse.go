package strings

import (
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// setCall is what the options of SET and GETEX say.
type setCall struct {
	nx, xx, get      bool
	keepTTL, persist bool

	expiry   []byte // not yet read; nil if there is none
	unit     time.Duration
	absolute bool
	word     string // which of the four
}

// expiryOptions are the options of a string's expiry.
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

// parseSet reads what follows the value in SET.
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

// parseGetex reads what follows the key in GETEX.
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

// takeExpiry takes an expiry option and its number from the front of args and reports
// whether it is one. The same option may come again, and the last one counts; another
// one may not.
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

// futureInstant turns the expiry that a command sets a string with into an instant:
// a positive number, which may all the same lie in the past if it is absolute.
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
