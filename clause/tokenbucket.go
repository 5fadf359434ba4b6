package clause

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/tokenbucket"
)

// defaultCold is the cold factor of WARMUP if COLD is not given, as in Guava.
const defaultCold = 3

// Acquire parses args, the arguments of TB.ACQUIRE from the key on, into call. It makes all checks
// that do not depend on the stored bucket. First it checks the words from left to right, then
// whether options contradict each other, and last the timeout of BLOCK and whether values would
// overflow. The other options go into o, unless o is nil. The error is "" on success.
func Acquire(args [][]byte, call *tokenbucket.Call, o *CallOptions) resp.Error {
	if len(args) < 4 {
		return resp.WrongArity("tb.acquire")
	}
	w := bucketWords{cold: defaultCold, least: 1}
	if err := w.read(args[1:]); err != "" {
		return err
	}
	if word := w.inTheWay(); word != nil {
		return resp.SyntaxNear(word)
	}
	unit := time.Second
	if w.has&wordMillis != 0 {
		unit = time.Millisecond
	}
	if err := w.id.Check(unit, w.quantity, w.mode() == tokenbucket.Greedy); err != "" {
		return err
	}
	if o != nil {
		*o = CallOptions{w.id.Identity, w.keep}
	}
	return w.build(unit, call)
}

// readClause parses args, a clause with its first word TB, into call. The clause has three numbers
// and may have a quantity, GREEDY, INTERVAL, DEBT and INIT.
func (w *bucketWords) readClause(args [][]byte, o Options, call *tokenbucket.Call) resp.Error {
	w.clause, w.cold, w.least = true, defaultCold, o.leastLimit()
	if len(args) < 4 {
		return resp.SyntaxNear(args[0])
	}
	if err := w.read(args[1:]); err != "" {
		return err
	}
	if word := w.inTheWay(); word != nil {
		return resp.SyntaxNear(word)
	}
	return w.build(o.Unit, call)
}

// bucketWord is a set of options of TB.ACQUIRE, one bit for each.
type bucketWord uint32

const (
	wordGreedy bucketWord = 1 << iota
	wordInterval
	wordLeaky
	wordWarmup
	wordCold
	wordInit
	wordDebt
	wordWait
	wordBlock
	wordMillis
	wordPeek
	wordPartial
	wordForce
	wordID
	wordReserve
	wordKeep
	wordPenalize

	anyMode   = wordGreedy | wordInterval | wordLeaky | wordWarmup
	anyWait   = wordWait | wordBlock
	anyCharge = wordPeek | wordPartial | wordForce
	anyID     = wordID | wordReserve
)

// bucketOptions lists the options of TB.ACQUIRE, with the number of values that follow them.
var bucketOptions = []struct {
	text   string
	word   bucketWord
	values int
}{
	{"GREEDY", wordGreedy, 0},
	{"INTERVAL", wordInterval, 0},
	{"LEAKY", wordLeaky, 0},
	{"WARMUP", wordWarmup, 1},
	{"COLD", wordCold, 1},
	{"INIT", wordInit, 1},
	{"DEBT", wordDebt, 0},
	{"WAIT", wordWait, 1},
	{"BLOCK", wordBlock, 1},
	{"MS", wordMillis, 0},
	{"PEEK", wordPeek, 0},
	{"PARTIAL", wordPartial, 0},
	{"FORCE", wordForce, 0},
	{"ID", wordID, 1},
	{"RESERVE", wordReserve, 2},
	{"KEEP", wordKeep, 1},
	{"PENALIZE", wordPenalize, 0},
}

// bucketWords has the arguments of TB.ACQUIRE or of a TB clause, with times as numbers without a
// unit, because the option MS, which determines the unit, may follow them.
type bucketWords struct {
	capacity, count, period, quantity int64
	least                             int64 // the minimum that the capacity may have
	has                               bucketWord
	warmup, init, wait                int64
	cold                              float64
	block                             []byte // the argument of BLOCK; nil without that option
	id                                IdentityArgs
	keep                              Keep
	clause                            bool   // whether the arguments are a clause, which has fewer options
	quantified                        bool   // whether the arguments contain a quantity
	coldWord                          []byte // the word COLD, which requires WARMUP; nil without COLD
	excluded                          []byte // the first word that is not allowed after the words before it; nil if there is none
}

// read parses args, the arguments from the capacity on, into w.
func (w *bucketWords) read(args [][]byte) resp.Error {
	if err := arg.AtLeast(args[0], "capacity", w.least, &w.capacity); err != "" {
		return err
	}
	if err := arg.Positive(args[1], "count", &w.count); err != "" {
		return err
	}
	if err := arg.Time(args[2], "period", &w.period); err != "" {
		return err
	}
	args, w.quantity = args[3:], 1
	if len(args) > 0 && arg.StartsNumber(args[0]) {
		if err := arg.Quantity(args[0], &w.quantity); err != "" {
			return err
		}
		args, w.quantified = args[1:], true
	}
	for len(args) > 0 {
		option := -1
		for i := range bucketOptions {
			if arg.IsWord(args[0], bucketOptions[i].text) {
				option = i
				break
			}
		}
		word := args[0]
		if option < 0 || w.has&bucketOptions[option].word != 0 {
			return resp.SyntaxNear(word)
		}
		w.note(word, bucketOptions[option].word)
		args = args[1:]
		values := bucketOptions[option].values
		if values == 0 {
			continue
		}
		if len(args) < values {
			return resp.SyntaxNear(word)
		}
		if err := w.value(bucketOptions[option].word, args[:values]); err != "" {
			return err
		}
		args = args[values:]
	}
	return ""
}

// note adds word to the options of w. It sets excluded to text, the option as written, if it is the
// first one that contradicts the options before it or that a clause must not have.
func (w *bucketWords) note(text []byte, word bucketWord) {
	w.has |= word
	if word == wordCold {
		w.coldWord = text
	}
	alien := w.clause && word&(wordGreedy|wordInterval|wordDebt|wordInit) == 0
	if w.excluded == nil && (alien || w.contradicts()) {
		w.excluded = text
	}
}

// inTheWay returns the word that a syntax error reports: the first one that is excluded, or COLD
// without WARMUP; nil if there is none.
func (w *bucketWords) inTheWay() []byte {
	if w.excluded == nil && w.has&(wordCold|wordWarmup) == wordCold {
		return w.coldWord
	}
	return w.excluded
}

// value parses values, the arguments of the option word, into w.
func (w *bucketWords) value(word bucketWord, values [][]byte) (err resp.Error) {
	text := values[0]
	switch word {
	case wordWarmup:
		return arg.Time(text, "WARMUP", &w.warmup)
	case wordCold:
		w.cold, err = parseFactor(text)
		return err
	case wordBlock:
		w.block = text
		return ""
	case wordID:
		return w.id.Identify(text)
	case wordReserve:
		return w.id.Reserve(text, values[1])
	case wordKeep:
		w.keep, err = ParseKeep(text)
		return err
	}
	n, ok := arg.Int(text)
	switch {
	case !ok && word == wordInit:
		return resp.Argument(resp.ErrNotInteger, "INIT", text, w.fromNoneToCapacity())
	case !ok:
		return resp.Argument(resp.ErrNotInteger, "WAIT", text, "an integer of at least 0")
	case word == wordInit && (n < 0 || n > w.capacity):
		return resp.Argument(resp.ErrNotPositive, "INIT", text, w.fromNoneToCapacity())
	case word == wordWait && n < 0:
		return resp.ErrTimeoutNegative
	}
	if word == wordInit {
		w.init = n
	} else {
		w.wait = n
	}
	return ""
}

func (w *bucketWords) fromNoneToCapacity() string {
	return "from 0 to the capacity, " + strconv.FormatInt(w.capacity, 10)
}

// contradicts reports whether the options of w contradict each other.
func (w *bucketWords) contradicts() bool {
	several := func(of bucketWord) bool { return w.has&of&(w.has&of-1) != 0 }
	with := func(a, b bucketWord) bool { return w.has&a != 0 && w.has&b != 0 }
	return several(anyMode) || several(anyWait) || several(anyCharge) ||
		with(anyWait, wordPartial|wordForce) || with(wordBlock, wordPeek|anyID) ||
		several(anyID) || with(wordReserve, wordPeek) ||
		with(wordPartial, wordDebt|wordWarmup) ||
		with(wordDebt, wordInterval|wordLeaky|wordWarmup) ||
		with(wordInit, wordLeaky|wordWarmup) ||
		with(wordKeep, wordWait|wordLeaky|wordWarmup|wordDebt) ||
		with(wordPenalize, wordPartial|wordForce|anyWait|anyID|wordKeep|wordLeaky|wordWarmup|wordDebt)
}

// build fills call from the arguments, with times in unit, and validates it. If the call is not
// valid, it returns the error, and call has no meaning.
func (w *bucketWords) build(unit time.Duration, call *tokenbucket.Call) resp.Error {
	*call = tokenbucket.Call{
		Mode:     w.mode(),
		Charge:   w.charge(),
		Capacity: w.capacity,
		Count:    w.count,
		Period:   inUnit(w.period, unit),
		Interval: limit.Interval(w.period, unit, w.count),
		Quantity: w.quantity,
		Init:     w.capacity,
		Waits:    w.has&anyWait != 0,
		MaxWait:  inUnit(w.wait, unit),
		Block:    w.has&wordBlock != 0,
		Penalize: w.has&wordPenalize != 0,
		Millis:   unit == time.Millisecond,
	}
	if w.has&wordInit != 0 {
		call.Init = w.init
	}
	if call.Block {
		timeout, err := arg.Timeout(w.block, unit)
		if err != "" {
			return err
		}
		call.MaxWait = timeout
		if timeout == 0 {
			call.MaxWait = tokenbucket.NoLimit
		}
	}
	if call.Mode == tokenbucket.Warmup {
		call.Warmup, call.Cold = inUnit(w.warmup, unit), w.cold
	}
	switch err := call.Validate(); {
	case err == nil:
		return ""
	case errors.Is(err, limit.ErrRateTooHigh):
		return resp.ErrRateAdvice
	}
	return resp.ErrOverflow
}

func (w *bucketWords) mode() tokenbucket.Mode {
	switch {
	case w.has&wordInterval != 0:
		return tokenbucket.Interval
	case w.has&wordLeaky != 0:
		return tokenbucket.Leaky
	case w.has&wordWarmup != 0:
		return tokenbucket.Warmup
	case w.has&wordDebt != 0:
		return tokenbucket.Debt
	}
	return tokenbucket.Greedy
}

func (w *bucketWords) charge() tokenbucket.Charge {
	switch {
	case w.has&wordPeek != 0:
		return tokenbucket.Peek
	case w.has&wordPartial != 0:
		return tokenbucket.Partial
	case w.has&wordForce != 0:
		return tokenbucket.Force
	}
	return tokenbucket.Whole
}

// inUnit returns n units of time, or the maximum of time.Duration if that is less.
func inUnit(n int64, unit time.Duration) time.Duration {
	return time.Duration(limit.SatMul(n, int64(unit)))
}

// parseFactor parses b as the factor of COLD: an integer of at least 1, or such an integer with a
// decimal point and at least one more digit. The error is "" on success.
func parseFactor(b []byte) (float64, resp.Error) {
	whole, fraction, decimal := bytes.Cut(b, []byte{'.'})
	n, ok := arg.Int(whole)
	valid := ok && (!decimal || len(fraction) > 0)
	for _, c := range fraction {
		valid = valid && '0' <= c && c <= '9'
	}
	f, err := strconv.ParseFloat(string(b), 64)
	const must = "a number of at least 1, such as 2.5"
	switch {
	case valid && n < 1:
		return 0, resp.Argument(resp.ErrNotPositive, "COLD", b, must)
	case !valid || err != nil:
		return 0, resp.Argument(resp.ErrNotInteger, "COLD", b, must)
	}
	return f, ""
}
