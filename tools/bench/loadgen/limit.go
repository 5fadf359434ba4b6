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

// Limit is the limit that a command asks for: what its replies must say, and how
// many units it may grant to one key within a span of time at the very most.
type Limit struct {
	// Name is the limit as people call it, such as "GCRA" or "sliding window LOG".
	Name string
	// Most is the limit that every reply must show, where a reply to RL.MULTI may
	// show one of others instead.
	Most   int64
	others []int64
	// bound returns the most units that one key may be granted within a span, both
	// ends included, whatever happened before it.
	bound func(span time.Duration) int64
	// unbounded says why no bound holds, and is empty where one does.
	unbounded string
	// spell is how far back a refusal looks: a call of q units is refused only if
	// Most-q+1 units or more were granted within it. It is 0 where nothing as simple
	// can be said.
	spell time.Duration
	// partial replies give the number of units that were not granted.
	partial bool
	// free calls charge nothing although they are allowed.
	free bool
	// asks is the quantity of a call, [drawn] where {q} says it.
	asks int64
}

// drawn as [Limit.asks] stands for a quantity that differs between calls.
const drawn = -1

// Bound returns the most units that one key may be granted within span, and false
// if there is no such number.
func (l *Limit) Bound(span time.Duration) (int64, bool) {
	if l.bound == nil {
		return 0, false
	}
	return l.bound(span), true
}

// Unbounded says why Bound knows no number.
func (l *Limit) Unbounded() string { return l.unbounded }

// owed returns how many units were granted within a spell before a call of so many
// was refused.
func (l *Limit) owed(asked int64) int64 {
	if l.spell <= 0 || asked < 1 {
		return 0
	}
	return max(limit.SatSub(l.Most, asked-1), 0)
}

// shows reports whether a reply may show the limit n.
func (l *Limit) shows(n int64) bool { return n == l.Most || slices.Contains(l.others, n) }

// charge is one limit of a call, and the word that is its key.
type charge struct {
	limit *Limit
	key   string
}

// errNotALimit marks a command line that the server will refuse: it is sent, and
// counted as what comes back.
var errNotALimit = errors.New("not a call of a limiter")

// callReader takes the words of a limiter's call one after the other.
type callReader struct {
	words []string
	// quantity is the least and the most that a call asks for.
	quantity [2]int64
	// drawn is what {q} stands for, varies whether the quantity is {q}.
	drawn  [2]int64
	varies bool
	// millis says of a clause of RL.MULTI that its periods are milliseconds.
	millis bool
}

// period returns the unit of a period that no word of its own says.
func (r *callReader) period() time.Duration {
	if r.millis {
		return time.Millisecond
	}
	return time.Second
}

// number takes an integer.
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

// numbers takes as many integers as there are places.
func (r *callReader) numbers(places ...*int64) error {
	for _, p := range places {
		var err error
		if *p, err = r.number(); err != nil {
			return err
		}
	}
	return nil
}

// takeQuantity takes the quantity if one follows.
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

// word takes the next word in upper case, "" at the end.
func (r *callReader) word() string {
	if len(r.words) == 0 {
		return ""
	}
	w := strings.ToUpper(r.words[0])
	r.words = r.words[1:]
	return w
}

// throttleLimit reads the arguments of CL.THROTTLE behind the key. With T the
// emission interval, TAT moves on by T for every cell and may be at most limit*T
// ahead of now, so a span admits limit + span/T cells.
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
	// A spell ago TAT was no more than the limit's worth of intervals ahead, so by
	// now without grants it would not be ahead at all.
	l.spell = units(most, quota.Interval())
	return l, nil
}

// units returns n of the command's units of time.
func units(n int64, unit time.Duration) time.Duration {
	return time.Duration(limit.SatMul(n, int64(unit)))
}

// share returns floor(n*span/of), held at the end of int64.
func share(n int64, span, of time.Duration) int64 {
	if of <= 0 {
		return math.MaxInt64
	}
	return limit.MulDivFloor(n, int64(span), int64(of))
}
