package strings

import (
	"math"
	"math/big"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/longdouble"
	"github.com/cellserver/cellserver/resp"
)

func increxCommand() *command.Command {
	return &command.Command{
		Name: "increx", Arity: -2, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast | command.FlagDecides, Keys: command.OneKey, Categories: command.CatString, Group: "string",
		Summary: "Adds to the number at a key within bounds and sets its expiry.",
		Syntax: "key [NX | XX] [BYINT increment | BYFLOAT increment] [LBOUND lowerbound] [UBOUND upperbound] [SATURATE] " +
			"[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] [ENX]",
		Since: "1.0.0", Complexity: "O(1)", Reply: "the number that the key holds now, and what was added to it: 0 if the call was declined",
		Parse: askIncrex, Answer: answerIncrex,
	}
}

// increxWords has the options of an INCREX. The numbers are not parsed yet.
type increxWords struct {
	setCall
	by, lower, upper     []byte // the arguments of the options; each is nil without its option
	float, saturate, enx bool
}

// parseIncrex parses args, the arguments of INCREX after the key. An option must not occur twice.
// The error is "" on success.
func parseIncrex(args [][]byte) (call increxWords, err resp.Error) {
	flag := func(on *bool) bool {
		first := !*on
		*on = true
		return first
	}
	for i := 0; i < len(args); i++ {
		number := func(field *[]byte) bool {
			if *field != nil || i+1 == len(args) {
				return false
			}
			i++
			*field = args[i]
			return true
		}
		known := false
		switch a := args[i]; {
		case arg.IsWord(a, "BYINT"):
			known = number(&call.by)
		case arg.IsWord(a, "BYFLOAT"):
			call.float = true
			known = number(&call.by)
		case arg.IsWord(a, "LBOUND"):
			known = number(&call.lower)
		case arg.IsWord(a, "UBOUND"):
			known = number(&call.upper)
		case arg.IsWord(a, "SATURATE"):
			known = flag(&call.saturate)
		case arg.IsWord(a, "NX"):
			known = flag(&call.nx) && !call.xx
		case arg.IsWord(a, "XX"):
			known = flag(&call.xx) && !call.nx
		case arg.IsWord(a, "ENX"):
			known = flag(&call.enx) && !call.persist
		case arg.IsWord(a, "PERSIST"):
			known = flag(&call.persist) && !call.enx && call.expiry == nil
		case call.expiry == nil && !call.persist && call.takeExpiry(args[i:]):
			known = true
			i++
		}
		if !known {
			return call, resp.ErrSyntax
		}
	}
	if call.enx && call.expiry == nil {
		return call, resp.ErrExpiryMissing
	}
	return call, ""
}

// askIncrex is the Parse function of INCREX. It sets the fields of a counter ask from the
// arguments. The error is "" on success.
func askIncrex(c *command.Call) resp.Error {
	words, err := parseIncrex(c.Args[2:])
	if err != "" {
		return err
	}
	a := c.NewAsk(decide.Counter, c.Args[1])
	a.Counter = counter.Call{Saturate: words.saturate, IfAbsent: words.nx, IfExists: words.xx}
	if words.float {
		a.Counter.Float, err = floatsOf(&words)
	} else {
		err = intsOf(&words, &a.Counter)
	}
	switch {
	case err != "":
		return err
	case words.persist:
		a.Counter.Expiry = counter.Never
	case words.expiry != nil:
		a.Counter.Expiry = counter.Set
		if words.enx {
			a.Counter.Expiry = counter.SetIfNone
		}
		a.Counter.At, err = futureInstant(c, words.expiry, words.unit, words.absolute)
	}
	return err
}

// intsOf parses the numbers of a call that adds an integer, and sets them in call. Without an
// option, the increment is 1 and the bounds are the bounds of int64. The error is "" on success.
func intsOf(words *increxWords, call *counter.Call) resp.Error {
	read := func(text []byte, absent int64, n *int64) bool {
		if *n = absent; text == nil {
			return true
		}
		var ok bool
		*n, ok = arg.Int(text)
		return ok
	}
	switch {
	case !read(words.by, 1, &call.By):
		return "ERR Increment is not an integer or out of range"
	case !read(words.lower, math.MinInt64, &call.Lower):
		return "ERR LBOUND is not an integer or out of range"
	case !read(words.upper, math.MaxInt64, &call.Upper):
		return "ERR UBOUND is not an integer or out of range"
	case call.Lower > call.Upper:
		return resp.ErrBoundsCrossed
	}
	return ""
}

// floatsOf parses the numbers of a call that adds a floating-point number. A missing bound is the
// largest or the smallest number. The error is "" on success.
func floatsOf(words *increxWords) (*counter.Floats, resp.Error) {
	f := &counter.Floats{}
	read := func(text []byte, n **big.Float) (ok bool) {
		if text == nil {
			*n = longdouble.Max()
			return true
		}
		*n, ok = longdouble.Parse(text)
		return ok
	}
	switch {
	case !read(words.by, &f.By):
		return nil, "ERR Increment is not a valid float"
	case f.By.IsInf():
		return nil, "ERR BYFLOAT increment cannot be Infinity"
	case !read(words.lower, &f.Lower):
		return nil, "ERR LBOUND is not a valid float"
	case !read(words.upper, &f.Upper):
		return nil, "ERR UBOUND is not a valid float"
	}
	if words.lower == nil {
		f.Lower = longdouble.Neg(f.Lower)
	}
	if f.Lower.Cmp(f.Upper) > 0 {
		return nil, resp.ErrBoundsCrossed
	}
	return f, ""
}

// answerIncrex is the Answer function of INCREX. It counts the call as a call of a limiter, and
// replies with the number and with what was added to it.
func answerIncrex(c *command.Call, a *decide.Ask) {
	a.Decision = a.Counter.Decision(&a.Counted)
	c.Server.Limited(c, a)
	c.W.Array(2)
	if a.Counted.Texts == nil {
		c.W.Int(a.Counted.Value)
		c.W.Int(a.Counted.Applied)
		return
	}
	for _, text := range a.Counted.Texts {
		c.W.LongDouble(text)
	}
}
