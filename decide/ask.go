package decide

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Family names the limiter of an [Ask], and so the field with its parameters.
type Family uint8

// The families.
const (
	// Cell is CL.THROTTLE: Quota and Quantity.
	Cell Family = iota + 1
	// Window is SW.ALLOW.
	Window
	// Bucket is TB.ACQUIRE.
	Bucket
	// Cancel returns what Bucket took for a caller that stopped waiting.
	Cancel
	// Lease is CC.ACQUIRE, CC.RELEASE and CC.RENEW.
	Lease
	// Several is RL.MULTI: Clauses, decided at one instant; all are charged or none.
	Several
	// Admin is a command about a key, or about all keys, that is not a limiter.
	Admin
	// Counter is INCREX.
	Counter
)

// Ask is the question that one command puts to a limiter, and the answer. It refers to the arguments of
// the command until [Ask.Own] copies them.
type Ask struct {
	DB     int
	Key    []byte // unless Family is Several
	Family Family
	// Millis and WithDetails change only the reply: times in milliseconds, and the answer of each
	// clause.
	Millis, WithDetails bool

	// The answer; Details and Counted, at the end, belong to it. If Err is not nil, no other field of
	// the answer is valid. Refused reports whether a clause was refused. Now is the instant of the
	// decision.
	Refused  bool
	Missing  int64 // of a Partial: how many of the units asked for were not granted
	Err      error
	Now      limit.Instant
	Decision limit.Decision
	// Foreign is the number of the clause, from 1, whose key has the usage of another limit, with
	// another mode or rate than the clause's. The clause may have carried the usage over. 0 is
	// none. An ask that is not a Several counts as one clause.
	Foreign int

	// The parameters, by Family.
	Quota    gcra.Quota
	Quantity int64
	Window   slidingwindow.Call
	Bucket   tokenbucket.Call
	Lease    concurrency.Call
	Clauses  []Clause
	Admin    AdminCall
	Counter  counter.Call
	// Partial makes Several grant the same number of units to every clause, as many as the clause
	// with the fewest can grant. Each clause asks for the same number. A lease is granted or
	// refused as a whole. If no unit can be granted all clauses are refused. A quantity that is not
	// positive ignores Partial.
	Partial bool

	// Next is another ask of the same command, nil for most.
	Next *Ask

	// Details are the answers of the clauses; the caller allocates them.
	Details []limit.Decision
	Result  AdminResult
	Counted counter.Result // of Counter, in place of Decision
}

// Clause is one limit of an RL.MULTI: a key and exactly one of the four calls.
type Clause struct {
	Key      []byte
	Quota    *gcra.Quota // with Quantity
	Quantity int64
	Force    bool // charge Quota even beyond its limit, as Charge of the others can say
	Window   *slidingwindow.Call
	Bucket   *tokenbucket.Call
	Lease    *concurrency.Call // an acquisition; with its Peek it refuses nothing, while other clauses are charged
	// Peek makes the clause, and then the whole call, only ask.
	Peek bool
}

// Op is the operation of an [AdminCall].
type Op uint8

// The operations. The last three are about all keys and have no Key.
const (
	Delete   Op = iota + 1
	Exists      // also TOUCH
	Expiry      // TTL and related commands
	Expire      // At and Condition
	Persist     //
	Type        // the name that TYPE replies
	Text        // GET: the decimal TAT of a cell, ErrWrongType for anything but a string
	Describe    // RL.INFO: By
	Scan        // Cursor and Count
	Count       // DBSIZE
	Flush       // FLUSHDB: the keys of this server's prefix only
)

// AdminCall has the parameters of a command that is not a limiter.
type AdminCall struct {
	Op        Op
	At        limit.Instant
	Condition ExpireCondition
	By        any // of Describe: see Keys.Describe of commands/env
	Cursor    uint64
	Count     int
	// Match and TypeName only filter the reply of Scan.
	Match    []byte
	TypeName string
}

// ExpireCondition is a set of the options of EXPIRE and related commands.
type ExpireCondition uint8

const (
	// ExpireIfNone (NX): only a key that never expires.
	ExpireIfNone ExpireCondition = 1 << iota
	// ExpireIfAny (XX): only a key that expires.
	ExpireIfAny
	// ExpireIfLater (GT): only to a later instant; never counts as latest.
	ExpireIfLater
	// ExpireIfEarlier (LT): only to an earlier instant.
	ExpireIfEarlier
)

// AdminResult is the answer to an [AdminCall].
type AdminResult struct {
	Found  bool          // the key exists
	Done   bool          // it was deleted, or its expiry changed
	Expiry limit.Instant // with HasExpiry
	// HasExpiry is false for a key that never expires.
	HasExpiry bool
	Text      string  // of Type and Text
	Number    int64   // of Count
	Fields    []Field // of Describe
	Cursor    uint64  // of Scan: the cursor of the next step, 0 at the end
	Keys      []Named // of Scan
}

// Field is a field of RL.INFO: a text or a number.
type Field struct {
	Name, Text string
	Number     int64
	IsText     bool
}

// Named is a key that Scan has found, and its type in TYPE.
type Named struct {
	Key  []byte
	Type string
}

// Unavailable is the error of an ask that could not be decided. Its text gives the reason.
type Unavailable string

func (e Unavailable) Error() string { return string(e) }

// ErrCrossSlot is the error of a [Several] whose keys are in different slots of a cluster, where it may
// not be decided in steps.
var ErrCrossSlot = errors.New("the keys are in several slots")

// OnlyLooks reports whether the ask changes no key, whatever the keys hold: its quantity is 0, or it is
// a peek.
func (a *Ask) OnlyLooks() bool {
	switch a.Family {
	case Cell:
		return a.Quantity == 0
	case Window:
		return windowLooks(&a.Window)
	case Bucket:
		return bucketLooks(&a.Bucket)
	case Lease:
		return leaseLooks(&a.Lease)
	case Several:
		return slices.ContainsFunc(a.Clauses, func(c Clause) bool { return c.Peek }) || !slices.ContainsFunc(a.Clauses, Clause.takes)
	}
	return false
}

// units returns a pointer to the quantity of a clause, nil if the clause counts no units.
func (c *Clause) units() *int64 {
	switch {
	case c.Window != nil:
		return &c.Window.Quantity
	case c.Bucket != nil:
		return &c.Bucket.Quantity
	case c.Lease != nil:
		return nil
	}
	return &c.Quantity
}

// takes reports whether a clause may change its key.
func (c Clause) takes() bool {
	switch {
	case c.Window != nil:
		return !windowLooks(c.Window)
	case c.Bucket != nil:
		return !bucketLooks(c.Bucket)
	case c.Lease != nil:
		return !leaseLooks(c.Lease)
	}
	return c.Quantity != 0
}

func windowLooks(c *slidingwindow.Call) bool {
	return c.Charge == slidingwindow.Peek || c.Quantity == 0 && !c.Penalize
}

// bucketLooks reports whether a call only peeks. A call with Denied does not: its refusal is
// stored.
func bucketLooks(c *tokenbucket.Call) bool {
	return !c.Denied && (c.Charge == tokenbucket.Peek || c.Quantity == 0)
}

func leaseLooks(c *concurrency.Call) bool { return c.Op == concurrency.Acquire && c.Peek }

// Own copies the bytes that the ask refers to, appended to buf, so that the ask may outlive the
// arguments of its command. It also copies the calls that clauses point to, and drops references
// that an ask of another family has left.
func (a *Ask) Own(buf []byte) []byte {
	own := func(b []byte) []byte {
		from := len(buf)
		buf = append(buf, b...)
		return buf[from:len(buf):len(buf)]
	}
	if a.Key = own(a.Key); a.Family == Lease {
		a.Lease.Member = own(a.Lease.Member)
	} else {
		a.Lease.Member = nil
	}
	if a.Family != Admin {
		a.Admin.Match = nil
	} else if a.Admin.Match != nil { // an empty pattern is one, too
		a.Admin.Match = own(a.Admin.Match)
	}
	clauses := a.Clauses
	if a.Clauses, a.Details = nil, nil; a.Family == Several {
		a.Clauses, a.Details = make([]Clause, len(clauses)), make([]limit.Decision, len(clauses))
		var member []byte // of the lease before, which usually has the same member
		for i, c := range clauses {
			c = c.own()
			if c.Key = own(c.Key); c.Lease != nil {
				if !bytes.Equal(c.Lease.Member, member) {
					member = own(c.Lease.Member)
				}
				c.Lease.Member = member
			}
			a.Clauses[i] = c
		}
	}
	return buf
}

// Bytes returns the greatest number of bytes that [Ask.Own] copies.
func (a *Ask) Bytes() int {
	n := len(a.Key) + len(a.Lease.Member) + len(a.Admin.Match)
	for i := range a.Clauses {
		n += len(a.Clauses[i].Key)
		if l := a.Clauses[i].Lease; l != nil {
			n += len(l.Member)
		}
	}
	return n
}

// Apart gives the ask its own clauses and details, so that it can be decided at the same time as asks
// that share its bytes.
func (a *Ask) Apart() {
	if a.Family != Several {
		return
	}
	clauses := a.Clauses
	a.Clauses, a.Details = make([]Clause, len(clauses)), make([]limit.Decision, len(clauses))
	for i, c := range clauses {
		a.Clauses[i] = c.own()
	}
}

// Forget drops all references to bytes, so that the ask can be reused for the next command.
func (a *Ask) Forget() {
	a.Key, a.Lease.Member, a.Clauses, a.Details, a.Next = nil, nil, nil, nil, nil
	a.Counter.Float, a.Counted.Texts = nil, nil
}

// own copies the call of a clause.
func (c Clause) own() Clause {
	if c.Quota != nil {
		q := *c.Quota
		c.Quota = &q
	}
	if c.Window != nil {
		w := *c.Window
		c.Window = &w
	}
	if c.Bucket != nil {
		b := *c.Bucket
		c.Bucket = &b
	}
	if c.Lease != nil {
		l := *c.Lease
		c.Lease = &l
	}
	return c
}
