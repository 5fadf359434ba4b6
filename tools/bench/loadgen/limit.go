package loadgen

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// Limit describes the limit that a command asks for: what its replies must contain, and the maximum
// number of units that it may grant to one key within a span of time.
type Limit struct {
	// Name is a name for reports, such as "GCRA, 16 at once and one per 2s".
	Name string
	// Most is the limit that every reply must show. A reply to RL.MULTI may show one of others
	// instead.
	Most   int64
	others []int64
	// bound returns the maximum number of units that one key may be granted within a span, both
	// ends included, whatever happened before.
	bound func(span time.Duration) int64
	// unbounded is the reason why there is no bound, or "".
	unbounded string
	// spell is the time before a refusal that explains it: a call of q units is refused only if
	// Most-q+1 units or more were granted within the spell before it. It is 0 if no such time is
	// known.
	spell time.Duration
	// partial says that the first integer of a reply is the number of units that were not granted.
	partial bool
	// free says that calls charge nothing although they are allowed.
	free bool
	// asks is the quantity of a call, or [drawn] if {q} stands for it.
	asks int64
}

// drawn, as [Limit.asks], says that the quantity differs between calls.
const drawn = -1

// Bound returns the maximum number of units that one key may be granted within span, and false if
// there is no bound.
func (l *Limit) Bound(span time.Duration) (int64, bool) {
	if l.bound == nil {
		return 0, false
	}
	return l.bound(span), true
}

// Unbounded returns the reason why there is no bound, or "" if there is one.
func (l *Limit) Unbounded() string { return l.unbounded }

// owed returns the number of units that must have been granted within the spell before a refusal of
// asked units; 0 if a refusal proves nothing.
func (l *Limit) owed(asked int64) int64 {
	if l.spell <= 0 || asked < 1 {
		return 0
	}
	return max(limit.SatSub(l.Most, asked-1), 0)
}

// shows reports whether a reply may show the limit n.
func (l *Limit) shows(n int64) bool { return n == l.Most || slices.Contains(l.others, n) }

// charge is one limit of a call, and the argument that is its key.
type charge struct {
	limit *Limit
	key   string
}

// errNotALimit marks a command line that the server will refuse, or whose replies have another
// form. The generator sends it and counts the replies, but checks no limit.
var errNotALimit = errors.New("not a call of a limiter")

// callReader parses the arguments of a limiter's command one after the other.
type callReader struct {
	words []string
	// quantity has the minimum and the maximum quantity of a call.
	quantity [2]int64
	// drawn is the range of {q}. varies says that the quantity is {q}.
	drawn  [2]int64
	varies bool
	// millis says that the periods of a clause of RL.MULTI are in milliseconds.
	millis bool
}

// period returns the unit of periods without an option of their own.
func (r *callReader) period() time.Duration {
	if r.millis {
		return time.Millisecond
	}
	return time.Second
}

// number parses the next argument as an integer. It returns errNotALimit if there is no argument or
// it is no integer.
func (r *callReader) number() (int64, error) {
	if len(r.words) == 0 {
		return 0, errNotALimit
	}
	n, err := strconv.ParseInt(r.words[0], 10, 64)
	if err != nil {
		return 0, errNotALimit
	}
	r.words = r.words[1:]
	return n, nil
}

// numbers parses one argument for each of places, and stores the integer there.
func (r *callReader) numbers(places ...*int64) error {
	for _, p := range places {
		var err error
		if *p, err = r.number(); err != nil {
			return err
		}
	}
	return nil
}

// takeQuantity parses the next argument if it is a quantity: a number or {q}.
func (r *callReader) takeQuantity() error {
	switch {
	case len(r.words) == 0:
		return nil
	case r.words[0] == "{q}":
		r.quantity, r.varies, r.words = r.drawn, true, r.words[1:]
		return nil
	case !strings.ContainsRune("+-0123456789", rune(r.words[0][0])):
		return nil
	}
	n, err := r.number()
	r.quantity = [2]int64{n, n}
	return err
}

// word returns the next argument in upper case, "" at the end.
func (r *callReader) word() string {
	if len(r.words) == 0 {
		return ""
	}
	w := strings.ToUpper(r.words[0])
	r.words = r.words[1:]
	return w
}

// throttleLimit parses the arguments of CL.THROTTLE after the key. With T the emission interval,
// TAT advances by T for every cell and may be at most limit*T ahead of now, so a span admits limit
// + span/T cells.
func throttleLimit(r *callReader) (*Limit, error) {
	var burst, count, period int64
	if err := r.numbers(&burst, &count, &period); err != nil {
		return nil, err
	}
	if err := r.takeQuantity(); err != nil {
		return nil, err
	}
	quota, err := gcra.NewQuotaPer(burst, count, period, r.period())
	if err != nil || len(r.words) > 0 {
		return nil, errNotALimit
	}
	most, interval := max(quota.Limit(), 0), int64(quota.Interval())
	l := &Limit{
		Name: fmt.Sprintf("GCRA, %d at once and one per %v", most, quota.Interval()),
		Most: quota.Limit(),
		bound: func(span time.Duration) int64 {
			return limit.SatAdd(most, int64(span)/interval)
		},
	}
	if (count < 0) != (period < 0) {
		l.bound = func(time.Duration) int64 { return 0 }
		return l, nil
	}
	// A spell before the refusal TAT was at most limit*T ahead of that instant, so without grants
	// since then it would not be ahead any more.
	l.spell = units(most, quota.Interval())
	return l, nil
}

// units returns n units as a duration, limited to the range of int64.
func units(n int64, unit time.Duration) time.Duration {
	return time.Duration(limit.SatMul(n, int64(unit)))
}

// share returns floor(n*span/of), limited to the range of int64.
func share(n int64, span, of time.Duration) int64 {
	if of <= 0 {
		return math.MaxInt64
	}
	return limit.MulDivFloor(n, int64(span), int64(of))
}
