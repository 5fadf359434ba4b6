package strings

import (
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// setCall has the parsed options of SET and GETEX. INCREX uses it, too.
type setCall struct {
	nx, xx, get      bool
	keepTTL, persist bool

	expiry   []byte // the argument of the expiry option, not parsed yet; nil if there is none
	unit     time.Duration
	absolute bool
	word     string // the name of the expiry option
}

// expiryOptions are the options that set the expiry of a string.
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

// parseSet parses args, the arguments of SET after the value. The error is "" on success.
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

// parseGetex parses args, the arguments of GETEX after the key. The error is "" on success.
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

// takeExpiry parses an expiry option and its number at the beginning of args, and reports whether
// they are there. The same option may be repeated, and the last one counts. A second, different
// option does not count as an expiry option.
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

// futureInstant converts text, the number of an expiry option in unit, into an instant. The number
// must be positive. If absolute is set, the number counts from the Unix epoch, and the instant may
// be in the past. The error is "" on success.
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
