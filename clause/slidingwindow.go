package clause

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
)

// windowArgs has the parsed arguments of SW.ALLOW or of an SW clause. Times are numbers without a
// unit, because the option MS, which determines the unit, may follow them.
type windowArgs struct {
	call   slidingwindow.Call
	window int64
	// quantified says that the arguments contain a quantity.
	quantified bool
	anchor     windowAnchor
	// anchorAt is the Unix time of the option ANCHOR, for anchorTime.
	anchorAt int64
	// timeout is the argument of BLOCK; nil without BLOCK.
	timeout []byte
	id      IdentityArgs
	keep    Keep
	// zoned and from say that the arguments have ZONE and FROM.
	zoned, from bool
	anyZone     bool // the value of Options.AnyZone
	// even is the word EVEN, which requires BUCKETS; nil without EVEN. excluded is the first word
	// that contradicts the words before it; nil if there is none.
	even, excluded []byte
}

// windowAnchor says how the windows of a call are aligned: to the Unix epoch, to the first call, by
// the key, or to a given time.
type windowAnchor uint8

const (
	anchorEpoch windowAnchor = iota
	anchorFirst
	anchorKey
	anchorTime
)

// SlidingWindow parses the arguments of
//
//	SW.ALLOW key limit window [quantity] [COUNTER | FIXED | LOG | BUCKETS m [EVEN]]
//	  [ANCHOR FIRST | KEY | unix-time] [PENALIZE] [MS] [PEEK | PARTIAL | FORCE]
//	  [KEEP units | KEEP share%] [BLOCK timeout] [ID token | RESERVE id ttl]
//	SW.ALLOW key limit DAY | WEEK | MONTH | YEAR [quantity] [FIXED] [ZONE zone] [FROM start] ..
//
// into call, and the other options into o, unless o is nil. logMax is the option sw-log-max-entries. The words are
// checked from left to right. After that come the checks that depend on several words, such as contradictions and the
// bounds of the window. The error is "" on success.
func SlidingWindow(args [][]byte, logMax int64, call *slidingwindow.Call, o *CallOptions) resp.Error {
	if len(args) < 3 {
		return resp.WrongArity("sw.allow")
	}
	var a windowArgs
	rest, err := a.numbers(args[1:], 1)
	if err != "" {
		return err
	}
	for len(rest) > 0 {
		word := rest[0]
		if rest, err = a.option(rest); err != "" {
			return err
		}
		a.judge(word)
	}
	unit := time.Second
	if a.call.Millis {
		unit = time.Millisecond
	}
	if a.excludesOthers() {
		return resp.SyntaxNear(a.excluded)
	}
	if err := a.id.Check(unit, a.call.Quantity, true); err != "" {
		return err
	}
	if o != nil {
		*o = CallOptions{a.id.Identity, a.keep}
	}
	return a.build(args[0], unit, logMax, call)
}

// clause parses a clause with its first word,
//
//	SW limit window [quantity] [mode] [ANCHOR ..]
//	SW limit DAY | WEEK | MONTH | YEAR [quantity] [FIXED] [ZONE zone] [FROM start]
//
// into call. With ANCHOR KEY the phase in call has no meaning, because the key is unknown.
func (a *windowArgs) clause(args [][]byte, o Options, call *slidingwindow.Call) resp.Error {
	if len(args) < 3 {
		return resp.SyntaxNear(args[0])
	}
	a.anyZone = o.AnyZone
	rest, err := a.numbers(args[1:], o.leastLimit())
	if err != "" {
		return err
	}
	for len(rest) > 0 {
		var ok bool
		word := rest[0]
		if rest, ok, err = a.modeOption(rest); err != "" {
			return err
		}
		if !ok {
			return resp.SyntaxNear(word)
		}
		a.judge(word)
	}
	a.call.Millis = o.Unit == time.Millisecond
	return a.build(nil, o.Unit, o.LogMaxEntries, call)
}

// numbers parses the numbers at the beginning of args: the limit, whose minimum is least, the
// window or a unit of a calendar, and the quantity if there is one. It returns the remaining arguments.
func (a *windowArgs) numbers(args [][]byte, least int64) ([][]byte, resp.Error) {
	if err := arg.AtLeast(args[0], "limit", least, &a.call.Limit); err != "" {
		return nil, err
	}
	if unit := calendar.ParseUnit(args[1]); unit != calendar.None {
		a.call.Calendar = calendar.Rule{Unit: unit, From: unit.First()}
	} else if err := arg.Time(args[1], "window", &a.window); err != "" {
		return nil, err
	}
	a.call.Quantity = 1
	args = args[2:]
	if len(args) > 0 && arg.StartsNumber(args[0]) {
		if err := arg.Quantity(args[0], &a.call.Quantity); err != "" {
			return nil, err
		}
		args, a.quantified = args[1:], true
	}
	return args, ""
}

// option parses the option at the beginning of args, which must not be empty, and returns the
// remaining arguments.
func (a *windowArgs) option(args [][]byte) ([][]byte, resp.Error) {
	rest, ok, err := a.modeOption(args)
	if ok || err != "" {
		return rest, err
	}
	word, rest := args[0], args[1:]
	switch {
	case arg.IsWord(word, "MS"):
		return rest, arg.Once(word, &a.call.Millis)
	case arg.IsWord(word, "PENALIZE"):
		return rest, arg.Once(word, &a.call.Penalize)
	case arg.IsWord(word, "PEEK"):
		return rest, a.charge(word, slidingwindow.Peek)
	case arg.IsWord(word, "PARTIAL"):
		return rest, a.charge(word, slidingwindow.Partial)
	case arg.IsWord(word, "FORCE"):
		return rest, a.charge(word, slidingwindow.Force)
	case arg.IsWord(word, "BLOCK") && len(rest) > 0:
		a.timeout = rest[0]
		return rest[1:], arg.Once(word, &a.call.Block)
	case arg.IsWord(word, "ID") && len(rest) > 0 && a.id.Token == nil:
		return rest[1:], a.id.Identify(rest[0])
	case arg.IsWord(word, "RESERVE") && len(rest) > 1 && a.id.Token == nil:
		return rest[2:], a.id.Reserve(rest[0], rest[1])
	case arg.IsWord(word, "KEEP") && len(rest) > 0 && a.keep.None():
		a.keep, err = ParseKeep(rest[0])
		return rest[1:], err
	}
	return nil, resp.SyntaxNear(word)
}

// judge sets excluded to word, the latest option, if it is the first one that contradicts the
// options before it.
func (a *windowArgs) judge(word []byte) {
	c := &a.call
	forcing := c.Charge == slidingwindow.Partial || c.Charge == slidingwindow.Force
	excluded := c.Penalize && forcing ||
		a.excludesOthers() ||
		c.Block && (forcing || c.Penalize || c.Charge == slidingwindow.Peek) ||
		c.Even && c.Mode != slidingwindow.None && c.Mode != slidingwindow.Buckets ||
		c.Mode == slidingwindow.Log && a.anchor != anchorEpoch ||
		a.excludesCalendar()
	if excluded && a.excluded == nil {
		a.excluded = word
	}
}

// excludesOthers reports whether the arguments have ID, RESERVE or KEEP together with an option of the window that
// excludes these.
func (a *windowArgs) excludesOthers() bool {
	c := &a.call
	return c.Penalize && !a.keep.None() ||
		a.id.Token != nil && (c.Block || c.Penalize || a.id.ttl != nil && c.Charge == slidingwindow.Peek)
}

// modeOption parses the option at the beginning of args if that option selects the mode, the anchor or
// the calendar of the windows. ok is false for any other option. rest has the arguments after the option.
func (a *windowArgs) modeOption(args [][]byte) (rest [][]byte, ok bool, err resp.Error) {
	word, rest := args[0], args[1:]
	switch {
	case arg.IsWord(word, "COUNTER"):
		return rest, true, a.mode(word, slidingwindow.Counter)
	case arg.IsWord(word, "FIXED"):
		return rest, true, a.mode(word, slidingwindow.Fixed)
	case arg.IsWord(word, "LOG"):
		return rest, true, a.mode(word, slidingwindow.Log)
	case arg.IsWord(word, "EVEN"):
		a.even = word
		return rest, true, arg.Once(word, &a.call.Even)
	case arg.IsWord(word, "BUCKETS") && len(rest) > 0:
		return rest[1:], true, a.buckets(word, rest[0])
	case arg.IsWord(word, "ANCHOR") && len(rest) > 0:
		return rest[1:], true, a.anchoring(word, rest[0])
	case arg.IsWord(word, "ZONE") && len(rest) > 0 && a.call.Calendar.Unit != calendar.None:
		return rest[1:], true, a.zone(word, rest[0])
	case arg.IsWord(word, "FROM") && len(rest) > 0 && a.call.Calendar.Unit != calendar.None:
		return rest[1:], true, a.start(word, rest[0])
	}
	return rest, false, ""
}

func (a *windowArgs) anchoring(word, b []byte) resp.Error {
	if a.anchor != anchorEpoch {
		return resp.SyntaxNear(word)
	}
	switch {
	case arg.IsWord(b, "FIRST"):
		a.anchor = anchorFirst
	case arg.IsWord(b, "KEY"):
		a.anchor = anchorKey
	default:
		at, ok := arg.Int(b)
		if !ok {
			return resp.Argument(resp.ErrNotInteger, "ANCHOR", b, "FIRST, KEY or a unix time")
		}
		a.anchor, a.anchorAt = anchorTime, at
	}
	return ""
}

func (a *windowArgs) mode(word []byte, m slidingwindow.Mode) resp.Error {
	if a.call.Mode != slidingwindow.None {
		return resp.SyntaxNear(word)
	}
	a.call.Mode = m
	return ""
}

var fromMinToMaxSlots = fmt.Sprintf("from %d to %d", slidingwindow.MinSlots, slidingwindow.MaxSlots)

func (a *windowArgs) buckets(word, b []byte) resp.Error {
	slots, ok := arg.Int(b)
	switch {
	case !ok:
		return resp.Argument(resp.ErrNotInteger, "BUCKETS", b, fromMinToMaxSlots)
	case slots < slidingwindow.MinSlots || slots > slidingwindow.MaxSlots:
		return resp.Argument(resp.ErrNotPositive, "BUCKETS", b, fromMinToMaxSlots)
	}
	a.call.Slots = int(slots)
	return a.mode(word, slidingwindow.Buckets)
}

func (a *windowArgs) charge(word []byte, c slidingwindow.Charge) resp.Error {
	if a.call.Charge != slidingwindow.Whole {
		return resp.SyntaxNear(word)
	}
	a.call.Charge = c
	return ""
}

// build fills call from the arguments, with times in unit, and validates it. If the call is not
// valid, it returns the error and leaves call unchanged. key is nil for a clause.
func (a *windowArgs) build(key []byte, unit time.Duration, logMax int64, call *slidingwindow.Call) resp.Error {
	c := &a.call
	switch {
	case a.excludesCalendar():
		return resp.SyntaxNear(a.excluded)
	case c.Calendar.Unit != calendar.None:
		c.Mode = slidingwindow.Calendar
	case c.Mode == slidingwindow.None:
		c.Mode = slidingwindow.Counter
	}
	if c.Mode == slidingwindow.Log && a.anchor != anchorEpoch {
		return resp.SyntaxNear(a.excluded)
	}
	c.LogMaxEntries = logMax
	c.Window = time.Duration(limit.SatMul(a.window, int64(unit)))
	if err := a.setPhase(key, unit); err != "" {
		return err
	}
	if c.Block {
		var err resp.Error
		if c.Timeout, err = arg.Timeout(a.timeout, unit); err != "" {
			return err
		}
	}
	if err := c.Validate(); err != nil {
		if errors.Is(err, slidingwindow.ErrExclusive) {
			return resp.SyntaxNear(a.inTheWay())
		}
		return windowError(err)
	}
	*call = *c
	return ""
}

// inTheWay returns the word that a syntax error reports: the first one that contradicts an earlier
// one or, if there is none, EVEN without BUCKETS.
func (a *windowArgs) inTheWay() []byte {
	if a.excluded == nil {
		return a.even
	}
	return a.excluded
}

func (a *windowArgs) setPhase(key []byte, unit time.Duration) resp.Error {
	c := &a.call
	switch a.anchor {
	case anchorFirst:
		c.First = true
	case anchorKey:
		c.Phase = slidingwindow.PhaseOf(slidingwindow.HashKey(key), c.Window)
	case anchorTime:
		if a.anchorAt > math.MaxInt64/int64(unit) || a.anchorAt < math.MinInt64/int64(unit) {
			return resp.ErrNotInteger
		}
		c.Phase = slidingwindow.PhaseAt(limit.Instant(a.anchorAt*int64(unit)), c.Window)
	}
	return ""
}

// windowError returns the reply for err, an error of package slidingwindow.
func windowError(err error) resp.Error {
	switch {
	case errors.Is(err, slidingwindow.ErrRange):
		return resp.ErrNotPositive
	case errors.Is(err, slidingwindow.ErrLogTooLong):
		return resp.ErrLogTooLong
	case errors.Is(err, limit.ErrOverflow):
		return resp.ErrOverflow
	case errors.Is(err, limit.ErrWrongType):
		return resp.ErrWrongType
	}
	return resp.ErrInternal
}
