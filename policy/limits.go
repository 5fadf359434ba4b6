package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Bounds are the server's options that limit clauses; 0 means the default of the family.
type Bounds struct {
	// LogMaxEntries is sw-log-max-entries: the maximum limit of a LOG in units.
	LogMaxEntries int64
	// MaxMembers is cc-max-members: the maximum number of members of a set of leases.
	MaxMembers int64
	// AnyZone accepts time zones that tzdata does not have: see [clause.Options].
	AnyZone bool
}

// Limits are the parsed clauses of a policy or an override. They never change, and many entries
// share them.
type Limits struct {
	// Millis says that durations are in milliseconds: the option MS.
	Millis bool
	// Text has the text of each clause: see [clause.Text]. If the limits have BAN, its text is the last element.
	Text []string
	// Clauses has 1 to [MaxClauses] clauses.
	Clauses []Clause
	// Bans are the bans for keys that are denied often, or nil.
	Bans *ban.Call

	// bounds are the bounds under which the limits were parsed.
	bounds Bounds
}

// Clause is one limit. Only the call of its Kind is set: Quota, Window, Bucket or Lease, or none for
// [clause.Unlimited], which is the only clause of its limits. The call has neither a key nor a quantity. [Clause.Boost] makes a copy to which a caller adds these.
type Clause struct {
	Kind clause.Kind
	// KeyPhase is true for windows with ANCHOR KEY: Window has no phase, because it depends on the
	// key.
	KeyPhase bool
	// Calls says that the clause has the word CALLS: it counts one unit for each call.
	Calls bool

	// millis is true if durations are in milliseconds. count and period are the rate of a Quota or
	// Bucket, as written.
	millis        bool
	count, period int64

	Quota  *gcra.Quota
	Window *slidingwindow.Call
	Bucket *tokenbucket.Call
	Lease  *concurrency.Call
}

// Length returns the length of the window of the clause at now, or for a rate the time in which so many units are
// free again. It is 0 for NONE.
func (c *Clause) Length(units int64, now limit.Instant) time.Duration {
	switch {
	case c.Window != nil && c.Window.Mode == slidingwindow.Calendar:
		_, end := c.Window.Calendar.Window(now)
		return end.Sub(now)
	case c.Window != nil:
		return c.Window.Window
	case c.Lease != nil:
		return c.Lease.Lease
	case c.count > 0:
		return time.Duration(limit.MulDivCeil(units, limit.SatMul(c.period, int64(unit(c.millis))), c.count))
	}
	return 0
}

// unit returns the unit of durations: a millisecond if millis is true, otherwise a second.
func unit(millis bool) time.Duration {
	if millis {
		return time.Millisecond
	}
	return time.Second
}

// ParseLimits parses clauses in the syntax of RL.MULTI, such as TB 200 100 1 SW 100000 86400 FIXED.
// millis says that durations are in milliseconds. A clause must not have a quantity, because each
// call gives its own. The duration of a clause may have a suffix, as in SW 100 1m; Text then has it
// as a number. o has the bounds of the clauses. A limit or capacity of 0 denies every call. An
// error names the clause ("ERR clause 2: ..."); "" means no error.
func ParseLimits(words [][]byte, millis bool, o Bounds) (*Limits, resp.Error) {
	words, bans := splitBan(words)
	n := clause.Count(words)
	switch {
	case n < 0:
		return nil, resp.SyntaxNear(words[0])
	case n == 0 && bans != nil:
		return nil, errBanAlone
	case n == 0:
		return nil, errNoClause
	case n > MaxClauses:
		return nil, errTooManyClauses
	}
	l := &Limits{Millis: millis, Text: make([]string, n), Clauses: make([]Clause, n), bounds: o}
	for i := range n {
		var one [][]byte
		one, words = clause.Next(words)
		var err resp.Error
		if one, err = clause.InUnit(one, unit(millis)); err != "" {
			return nil, inClause(i, err)
		}
		if err := l.Clauses[i].parse(one, millis, o); err != "" {
			return nil, inClause(i, err)
		}
		if l.Clauses[i].Kind == clause.Unlimited && n > 1 {
			return nil, inClause(i, errNotAlone)
		}
		l.Text[i] = clause.Text(one)
	}
	if bans != nil {
		if err := l.addBan(bans); err != "" {
			return nil, err
		}
	}
	return l, ""
}

// ParseElement parses words that a document has as one of several clauses: one or more clauses, as ParseLimits does,
// or only BAN. The result for BAN has no clause.
func ParseElement(words [][]byte, millis bool, o Bounds) (*Limits, resp.Error) {
	clauses, bans := splitBan(words)
	if bans == nil || len(clauses) > 0 {
		return ParseLimits(words, millis, o)
	}
	l := &Limits{Millis: millis, bounds: o}
	return l, l.addBan(bans)
}

// splitBan splits words before BAN. bans is nil if there is no such word.
func splitBan(words [][]byte) (clauses, bans [][]byte) {
	for i, w := range words {
		if clause.Word(w) == clause.Ban {
			return words[:i], words[i:]
		}
	}
	return words, nil
}

// addBan parses words, which begin with BAN, as the last of l.
func (l *Limits) addBan(words [][]byte) resp.Error {
	switch one, rest := clause.Next(words); {
	case len(rest) > 0:
		return inClause(len(l.Clauses), errBanLast)
	case len(l.Clauses) > 0 && l.Clauses[0].Kind == clause.Unlimited:
		return inClause(len(l.Clauses), errBanNone)
	default:
		c, text, err := parseBan(one, l.Millis)
		if err != "" {
			return inClause(len(l.Clauses), err)
		}
		l.Bans, l.Text = c, append(l.Text, text)
		return ""
	}
}

const (
	errNoClause       resp.Error = "ERR no clause: LIMITS is followed by clauses such as TB 200 100 1"
	errTooManyClauses resp.Error = "ERR too many clauses, at most 16"
	errNotAlone       resp.Error = "ERR NONE stands alone"
	errQuantity       resp.Error = "ERR a clause of a policy has no quantity"
)

// inClause adds the number of the clause to the error err. The clause with index 0 is clause 1.
func inClause(i int, err resp.Error) resp.Error {
	text := strings.TrimPrefix(string(err), "ERR ")
	return resp.Error("ERR clause " + strconv.Itoa(i+1) + ": " + text)
}

func (c *Clause) parse(words [][]byte, millis bool, o Bounds) resp.Error {
	var room clause.Room
	_, err := room.Parse(words, nil, clause.Options{
		Unit: unit(millis), LogMaxEntries: o.LogMaxEntries, MaxMembers: o.MaxMembers, Policy: true, AnyZone: o.AnyZone,
	})
	switch {
	case err != "":
		return err
	case room.HasQuantity:
		return errQuantity
	}
	*c = Clause{Kind: room.Kind, KeyPhase: room.KeyPhase, Calls: room.Calls, millis: millis}
	switch c.Kind {
	case clause.Cell:
		c.Quota = &room.Quota
	case clause.Window:
		if c.KeyPhase {
			room.Window.Phase = 0
		}
		c.Window = &room.Window
	case clause.Bucket:
		c.Bucket = &room.Bucket
	case clause.Lease:
		c.Lease = &room.Lease
	}
	c.own()
	if c.hasRate() { // an error is impossible, because Parse has accepted the numbers
		c.count, _ = strconv.ParseInt(string(words[2]), 10, 64)
		c.period, _ = strconv.ParseInt(string(words[3]), 10, 64)
	}
	return ""
}

// own copies the call, so that the clause does not keep the memory of a whole room.
func (c *Clause) own() {
	c.Quota, c.Window, c.Bucket, c.Lease = copied(c.Quota), copied(c.Window), copied(c.Bucket), copied(c.Lease)
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func (c *Clause) hasRate() bool { return c.Kind == clause.Cell || c.Kind == clause.Bucket }

// Equal reports whether l and other have the same text and the same unit, or are both nil. If they
// were parsed under the same [Bounds], they are then the same in everything.
func (l *Limits) Equal(other *Limits) bool {
	if l == nil || other == nil {
		return l == other
	}
	return l.Millis == other.Millis && slices.Equal(l.Text, other.Text)
}
