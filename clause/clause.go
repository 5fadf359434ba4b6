package clause

import (
	"strings"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Kind is the family of limiters to which a clause belongs. The first word of the clause selects
// it.
type Kind uint8

// These are the kinds, with the syntax of their clauses.
const (
	None      Kind = iota // None means that a text is not a clause.
	Cell                  // Cell is CL max_burst count period [quantity].
	Window                // Window is SW limit window [quantity] [mode] [ANCHOR ..] [ZONE ..] [FROM ..].
	Bucket                // Bucket is TB capacity count period [quantity] [mode] [DEBT] [INIT tokens].
	Lease                 // Lease is CC limit lease.
	Unlimited             // Unlimited is NONE, which is allowed in a policy.
	Ban                   // Ban is BAN refusals window block .., after the clauses of a policy. It is not a limit itself.
)

// Word returns the kind of the clause that begins with the word b, in upper or lower case, or None
// if no clause begins with b.
func Word(b []byte) Kind {
	if len(b) != 2 {
		switch {
		case arg.IsWord(b, usages[Unlimited]):
			return Unlimited
		case arg.IsWord(b, "BAN"):
			return Ban
		}
		return None
	}
	const upper = ^byte('a' - 'A')
	switch [2]byte{b[0] & upper, b[1] & upper} {
	case [2]byte{'C', 'L'}:
		return Cell
	case [2]byte{'S', 'W'}:
		return Window
	case [2]byte{'T', 'B'}:
		return Bucket
	case [2]byte{'C', 'C'}:
		return Lease
	}
	return None
}

// Count returns the number of clauses in words: 0 if words is empty, and -1 if words do not begin
// with a clause.
func Count(words [][]byte) int {
	if len(words) > 0 && Word(words[0]) == None {
		return -1
	}
	n := 0
	for _, w := range words {
		if Word(w) != None {
			n++
		}
	}
	return n
}

// Next splits words, which begin with a clause, before the first word of the next clause. one is
// the first clause, and rest is empty if there is no other.
func Next(words [][]byte) (one, rest [][]byte) {
	end := 1
	for end < len(words) && Word(words[end]) == None {
		end++
	}
	return words[:end], words[end:]
}

// Options are the options that all clauses of a command have in common.
type Options struct {
	// Unit is the unit of all times in the clauses: time.Second or, with the option MS,
	// time.Millisecond.
	Unit time.Duration
	// LogMaxEntries is the option sw-log-max-entries, and MaxMembers is cc-max-members.
	LogMaxEntries, MaxMembers int64
	// Policy says that the clause is part of a policy. Then its limit or capacity may be 0, which
	// denies every call, its last word may be CALLS, it may be NONE, and the syntax in an error does not
	// mention the quantity, which each call sets.
	Policy bool
	// AnyZone accepts a zone that tzdata does not have, because a program with another release of tzdata may have
	// stored the clause. The windows are then in UTC: see [calendar.Known].
	AnyZone bool
}

// leastLimit returns the minimum of a limit or capacity: 0 in a policy, and otherwise 1.
func (o *Options) leastLimit() int64 {
	if o.Policy {
		return 0
	}
	return 1
}

// Usage returns the syntax of clauses of the kind k. If inPolicy is true, the syntax has no
// quantity, and it has CALLS if the kind counts units.
func Usage(k Kind, inPolicy bool) string {
	if !inPolicy || k == Lease || k == Unlimited {
		return usages[k]
	}
	return strings.Replace(usages[k], " [quantity]", "", 1) + " [CALLS]"
}

var usages = [...]string{
	Cell: "CL max_burst count period [quantity]",
	Window: "SW limit <window | DAY | WEEK | MONTH | YEAR> [quantity] [COUNTER | FIXED | LOG | BUCKETS slots [EVEN]] " +
		"[ANCHOR FIRST | KEY | unix-time] [ZONE zone] [FROM start]",
	Bucket:    "TB capacity count period [quantity] [GREEDY | INTERVAL] [DEBT] [INIT tokens]",
	Lease:     "CC limit lease",
	Unlimited: "NONE",
}

// Room has memory for one parsed clause, and may be copied and reused. Only the call of its Kind is
// valid: Quota with Quantity, Window, Bucket or Lease. The kind Unlimited has none.
type Room struct {
	Kind Kind
	// HasQuantity says that the clause contains a quantity. Otherwise its quantity is the default,
	// 1.
	HasQuantity bool
	// KeyPhase says that the clause contains ANCHOR KEY, so that the phase of its windows depends
	// on the key.
	KeyPhase bool
	// Calls says that the clause ends with CALLS: it counts one unit for each call, whatever the
	// quantity of the call is.
	Calls bool

	Quota    gcra.Quota // the parameters of a Cell, together with Quantity
	Quantity int64
	Window   slidingwindow.Call
	Bucket   tokenbucket.Call
	Lease    concurrency.Call
}

// Parse parses words, one clause with its first word, into r, and returns the clause for key: see
// [Room.Clause]. The error is "" on success.
func (r *Room) Parse(words [][]byte, key []byte, o Options) (decide.Clause, resp.Error) {
	if err := r.read(words, o); err != "" {
		return decide.Clause{}, err
	}
	return r.Clause(key), ""
}

// Clause returns the parsed clause for key. For a window with ANCHOR KEY it sets the phase of
// r.Window. The result refers to key and to r, so neither may change while the result is in use.
func (r *Room) Clause(key []byte) decide.Clause {
	c := decide.Clause{Key: key}
	switch r.Kind {
	case Cell:
		c.Quota, c.Quantity = &r.Quota, r.Quantity
	case Window:
		if r.KeyPhase {
			r.Window.Phase = slidingwindow.PhaseOf(slidingwindow.HashKey(key), r.Window.Window)
		}
		c.Window = &r.Window
	case Bucket:
		c.Bucket = &r.Bucket
	case Lease:
		c.Lease = &r.Lease
	case Unlimited:
		c.Unlimited = true
	}
	return c
}

// Limit returns the limit of the parsed clause, or its capacity, as an answer shows it.
func (r *Room) Limit() int64 {
	switch r.Kind {
	case Window:
		return r.Window.Limit
	case Bucket:
		return r.Bucket.Capacity
	case Lease:
		return r.Lease.Limit
	case Unlimited:
		return decide.Unlimited
	}
	return r.Quota.Limit()
}

// SetMember sets the member of a clause of the kind Lease, without a copy, and returns an error if
// the member is too long. A clause does not contain its member; the command with the clause does.
func (r *Room) SetMember(member []byte) resp.Error {
	r.Lease.Member = member
	if err := r.Lease.Validate(); err != nil {
		return leaseError(err)
	}
	return ""
}

// read parses words, one clause, into r. An error about the value of an argument, or about too few
// words, includes the syntax of the clause.
func (r *Room) read(words [][]byte, o Options) resp.Error {
	err := r.readKind(words, o)
	switch {
	case err == "" || r.Kind == None:
		return err
	case resp.IsArgument(err), err == resp.SyntaxNear(words[0]): // the clause is too short
		return resp.WithUsage(err, Usage(r.Kind, o.Policy))
	}
	return err
}

func (r *Room) readKind(words [][]byte, o Options) resp.Error {
	r.Kind, r.HasQuantity, r.KeyPhase, r.Calls = Word(words[0]), false, false, false
	if r.Kind == Ban || r.Kind == Unlimited && !o.Policy {
		r.Kind = None
	}
	if o.Policy && r.Kind != None && r.Kind != Lease && r.Kind != Unlimited {
		words = r.readCalls(words)
	}
	switch r.Kind {
	case Cell:
		r.HasQuantity = len(words) > 4
		return ThrottleClause(words, o.Unit, &r.Quota, &r.Quantity)
	case Window:
		var a windowArgs
		err := a.clause(words, o, &r.Window)
		r.HasQuantity, r.KeyPhase = a.quantified, a.anchor == anchorKey
		return err
	case Bucket:
		var w bucketWords
		err := w.readClause(words, o, &r.Bucket)
		r.HasQuantity = w.quantified
		return err
	case Lease:
		return leaseClause(words, o, &r.Lease)
	case Unlimited:
		if len(words) == 1 {
			return ""
		}
		return resp.SyntaxNear(words[1])
	}
	return resp.SyntaxNear(words[0])
}

// readCalls sets r.Calls if CALLS is the last of words, and returns the words before it.
func (r *Room) readCalls(words [][]byte) [][]byte {
	last := len(words) - 1
	if r.Calls = arg.IsWord(words[last], "CALLS"); r.Calls {
		return words[:last]
	}
	return words
}
