package strings

import (
	"errors"
	"math/big"
	"strconv"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// increxCall is an INCREX as Redis 8.8 has it.
type increxCall struct {
	setCall
	float    bool
	by       []byte // nil for 1
	lower    []byte // nil without a bound, as upper
	upper    []byte
	saturate bool
	enx      bool
}

// parseIncrex reads what follows the key. No option may come twice.
func parseIncrex(args [][]byte) (call increxCall, err resp.Error) {
	take := func(field *[]byte, rest [][]byte) bool {
		if *field != nil || len(rest) < 2 {
			return false
		}
		*field = rest[1]
		return true
	}
	for i := 0; i < len(args); i++ {
		switch a, rest := args[i], args[i:]; {
		case parse.IsWord(a, "SATURATE") && !call.saturate:
			call.saturate = true
			continue
		case parse.IsWord(a, "ENX") && !call.enx && !call.persist:
			call.enx = true
			continue
		case parse.IsWord(a, "PERSIST") && !call.persist && !call.enx && call.expiry == nil:
			call.persist = true
			continue
		case parse.IsWord(a, "BYINT") && take(&call.by, rest):
		case parse.IsWord(a, "BYFLOAT") && take(&call.by, rest):
			call.float = true
		case parse.IsWord(a, "LBOUND") && take(&call.lower, rest):
		case parse.IsWord(a, "UBOUND") && take(&call.upper, rest):
		case call.expiry == nil && !call.persist && call.takeExpiry(rest):
		default:
			return call, resp.ErrSyntax
		}
		i++
	}
	if call.enx && call.expiry == nil {
		return call, "ERR ENX flag requires an expiration"
	}
	return call, ""
}

const errBoundsCrossed resp.Error = "ERR LBOUND can't be greater than UBOUND"

// errInfinite is what a float that is none gets from INCREX.
const errInfinite resp.Error = "ERR value or increment would produce Infinity"

// increx is INCREX: a counter, or a fixed window that begins with its first hit.
func increx(c *command.Call) {
	call, err := parseIncrex(c.Args[2:])
	if err != "" {
		c.Fail(err)
		return
	}
	var n increment
	if call.float {
		n = &floatIncrement{}
	} else {
		n = &intIncrement{}
	}
	if err = n.parse(&call); err != "" {
		c.Fail(err)
		return
	}
	at := limit.MaxInstant
	if call.expiry != nil {
		if at, err = futureInstant(c, call.expiry, call.unit, call.absolute); err != "" {
			c.Fail(err)
			return
		}
	}
	fault := c.Store.UpdateString(c.Client.Selected(), c.Args[1], func(old []byte, found bool, expiry limit.Instant) ([]byte, limit.Instant, error) {
		if !found {
			old = zeroText
		}
		value, err := n.apply(old, call.saturate)
		if call.persist || call.expiry != nil && (!call.enx || expiry == limit.MaxInstant) {
			expiry = at
		}
		return value, expiry, err
	})
	switch {
	case errors.Is(fault, parse.ErrNotFinite):
		c.Fail(errInfinite)
	case fault != nil:
		c.Fail(command.FloatError(fault))
	default:
		c.W.Array(2)
		n.reply(c.W)
	}
}

// increment is the arithmetic of an INCREX, in whole numbers or with a fraction.
type increment interface {
	parse(*increxCall) resp.Error
	// apply returns what is to be stored, nil if the sum is out of bounds.
	apply(old []byte, saturate bool) ([]byte, error)
	reply(*resp.Writer)
}

type intIncrement struct {
	by, lower, upper int64
	value, added     int64
}

func (n *intIncrement) parse(call *increxCall) resp.Error {
	for _, f := range []struct {
		text []byte
		name string
		def  int64
		into *int64
	}{
		{call.by, "Increment", 1, &n.by},
		{call.lower, "LBOUND", -1 << 63, &n.lower},
		{call.upper, "UBOUND", 1<<63 - 1, &n.upper},
	} {
		*f.into = f.def
		if f.text != nil {
			var ok bool
			if *f.into, ok = parse.Int(f.text); !ok {
				return resp.Error("ERR " + f.name + " is not an integer or out of range")
			}
		}
	}
	if n.lower > n.upper {
		return errBoundsCrossed
	}
	return ""
}

func (n *intIncrement) apply(old []byte, saturate bool) ([]byte, error) {
	was, ok := parse.Int(old)
	if !ok {
		return nil, limit.ErrNotInteger
	}
	sum := limit.SatAdd(was, n.by) // at the end of the numbers if it does not fit
	fits := sum-was == n.by && (sum > was) == (n.by > 0)
	n.value, n.added = was, 0
	if !fits || sum < n.lower || sum > n.upper {
		if !saturate {
			return nil, nil
		}
		sum = max(n.lower, min(n.upper, sum))
	}
	if added := limit.SatSub(sum, was); was+added != sum {
		return nil, limit.ErrSumOverflow
	}
	n.value, n.added = sum, sum-was
	return strconv.AppendInt(nil, sum, 10), nil
}

func (n *intIncrement) reply(w *resp.Writer) {
	w.Int(n.value)
	w.Int(n.added)
}

type floatIncrement struct {
	by, lower, upper *big.Float // bounds are nil where there are none
	value, added     []byte
}

func (n *floatIncrement) parse(call *increxCall) resp.Error {
	for _, f := range []struct {
		text []byte
		name string
		into **big.Float
	}{
		{call.by, "Increment", &n.by},
		{call.lower, "LBOUND", &n.lower},
		{call.upper, "UBOUND", &n.upper},
	} {
		if f.text != nil {
			var ok bool
			if *f.into, ok = parse.LongDouble(f.text); !ok {
				return resp.Error("ERR " + f.name + " is not a valid float")
			}
		}
	}
	if n.lower != nil && n.upper != nil && n.lower.Cmp(n.upper) > 0 {
		return errBoundsCrossed
	}
	return ""
}

func (n *floatIncrement) apply(old []byte, saturate bool) ([]byte, error) {
	was, ok := parse.LongDouble(old)
	if !ok {
		return nil, parse.ErrNotFloat
	}
	sum, ok := parse.AddLongDoubles(was, n.by)
	if was.IsInf() || n.by.IsInf() {
		return nil, parse.ErrNotFinite
	}
	n.value, n.added = parse.AppendLongDouble(nil, was), zeroText
	low, high := n.lower != nil && sum.Cmp(n.lower) < 0, n.upper != nil && sum.Cmp(n.upper) > 0
	switch {
	case ok && !low && !high:
	case !saturate:
		return nil, nil
	case high:
		sum = n.upper
	case low:
		sum = n.lower
	default:
		return nil, parse.ErrNotFinite
	}
	added, ok := parse.AddLongDoubles(sum, parse.NewLongDouble().Neg(was))
	if !ok {
		return nil, parse.ErrNotFinite
	}
	n.value, n.added = parse.AppendLongDouble(nil, sum), parse.AppendLongDouble(nil, added)
	return n.value, nil
}

func (n *floatIncrement) reply(w *resp.Writer) {
	for _, text := range [][]byte{n.value, n.added} {
		if w.Proto != 3 {
			w.Bulk(text)
			continue
		}
		w.Raw([]byte{','})
		w.Raw(text)
		w.Raw([]byte("\r\n"))
	}
}
