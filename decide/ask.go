package decide

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Family is the kind of an [Ask]. It determines which field of the ask has the parameters.
type Family uint8

// These are the families, with their commands.
const (
	// Cell is CL.THROTTLE. The parameters are Quota and Quantity.
	Cell Family = iota + 1
	// Window is SW.ALLOW. The parameters are in the field Window.
	Window
	// Bucket is TB.ACQUIRE. The parameters are in the field Bucket.
	Bucket
	// Cancel gives back the tokens that an ask of family Bucket took, for example because its
	// caller no longer waits. The parameters are in the field Bucket.
	Cancel
	// Lease is CC.ACQUIRE, CC.RELEASE and CC.RENEW. The parameters are in the field Lease.
	Lease
	// Several is RL.MULTI. The parameters are Clauses and Partial. All clauses are decided at one
	// instant, and all are charged or none.
	Several
	// Admin is a command that is not about limits but about one key of any kind, or about all keys.
	Admin
	// Counter is INCREX. The parameters are in the field Counter.
	Counter
	// Settle is RL.COMMIT, RL.CANCEL and RL.RENEW for the reservation with the token of the ask. The parameters are in
	// the field Settlement, and the answer is Settled. If the reservation is of several keys, the key of the ask is the
	// one with the names of the others.
	Settle
	// SettleSeveral is Settle for a reservation of a Several. Clauses has only keys: those that may
	// hold a part of the reservation, or the names of all its keys.
	SettleSeveral
	// Ban says whether the key is banned under a policy. The parameters are Bans and Denied. Such an ask has no ID. It
	// does not read the states of the limits of the policy, which are under other keys.
	Ban
	// Joint is a decision that needs several asks, about parts of one state under one key or of several states. The
	// parameters are Program, which also has the answer, and Others; apart from Err and Now, no other field of the
	// answer is set.
	Joint
)

// Ask is a question of one command to a limiter, with the answer. An ask refers to the bytes of the
// command's arguments until [Ask.Own] copies them. Only one goroutine at a time may use an ask.
type Ask struct {
	DB     int
	Key    []byte // the key; unused if Family is Several, or Admin with an operation about all keys
	Family Family
	// Millis and WithDetails change only the reply to the client. If Millis is true, times are in
	// milliseconds. If WithDetails is true, the reply also has the answer of each clause.
	Millis, WithDetails bool

	// ID identifies the call, so that it is charged only once although the client may send it
	// again. Without a token the call has no identity. A call that was charged is remembered with
	// each of its keys. A call is a repetition if one of its keys remembers its token. A repetition
	// charges nothing, and gets the answer of the first call. A call that only peeks ignores ID.
	ID idempotency.Call
	// Reserve makes the call, which must have an ID, a reservation: the call is charged as without
	// Reserve, and a later [Settle] can give units back. Windows, and buckets of mode Greedy, can
	// be reserved. All quantities must be positive, and the call must not be a peek. The clauses of
	// a Several may also be leases, with the same duration as the reservation; a settlement
	// releases them.
	Reserve reservation.Terms

	// The following fields are the answer, together with Details, Result and Counted below. If Err
	// is not nil, no other field of the answer is valid. Refused reports whether a Several was
	// refused. Now is the instant of the decision.
	Refused  bool
	Missing  int64 // number of units that a Partial asked for and did not get
	Err      error
	Now      limit.Instant
	Decision limit.Decision
	// Foreign is the number, counted from 1, of a clause whose key had usage under another limit:
	// one with another mode or rate than the clause. The decision may have converted that usage to
	// the limit of the clause. 0 means that there is no such clause. An ask that is not a Several
	// counts as one clause.
	Foreign int
	// Repeated says that the call was a repetition. Forgotten is the number of calls that its keys have
	// forgotten for it, because they remembered too many, and Shortest is the least time for which one
	// of these was remembered. The three are set only if ID has a token.
	Repeated  bool
	Forgotten uint32
	Shortest  time.Duration
	// Lapsed is the number of reservations of the keys that this ask has ended because their time had passed. A
	// reservation of several limits counts only at the key of its first limit. Full says that the ask was denied
	// because the key has too many live reservations.
	Lapsed uint32
	Full   bool
	// Linked is set by [Plan.One] for a Settle that it cannot decide, because the reservation is of several keys. The
	// plan is then Keep, and [Settlements] has to decide the ask. In the asks about single keys that Settlements makes,
	// Linked says that a link names the keys, and ID.Print is the fingerprint of the call that has made the link.
	Linked bool
	// Ends is the time until the first live reservation of the keys passes its time, if the ask was
	// denied: there may be room then. It is 0 if there is no such reservation. The caller sets it
	// to 0 before the decision.
	Ends time.Duration
	// Settled is the answer of a Settle, in place of Decision. If the Settle is a Commit and
	// Settled is Done, Estimated is the number of units that the reservation held, and Used is the
	// actual number. For a reservation of several limits both are the numbers of the limit with the
	// largest estimate, apart from limits that count calls.
	Settled         reservation.Outcome
	Estimated, Used int64

	// The following fields are the parameters. Family determines which of them are used.
	Quota    gcra.Quota
	Quantity int64
	Window   slidingwindow.Call
	Bucket   tokenbucket.Call
	Lease    concurrency.Call
	Clauses  []Clause
	Admin    AdminCall
	Counter  counter.Call
	// Settlement has the parameters of a Settle.
	Settlement reservation.Settlement
	// Bans has the parameters of a Ban. If Denied is set, a call of the key was denied, and the ask counts the denial;
	// otherwise the ask changes nothing.
	Bans   *ban.Call
	Denied bool
	// Program is the decision of a Joint. No copy of the ask may run it while the ask is in use.
	Program Program
	// Others are the keys of the further states of a Joint, whose Program is then a [Spanning]. They differ from each
	// other and from Key.
	Others [][]byte
	// Partial makes a Several grant the same number of units to every clause: as many as every
	// clause can grant. Every clause asks for the same number. A lease, or a clause with Fixed, is
	// granted or refused as a whole. If no unit can be granted, all clauses are refused. With a
	// quantity that is not positive Partial has no effect.
	Partial bool

	// Counts says that the call is charged even if it is denied: a Cell, a Window or a Bucket is charged as if the call
	// were forced. RetryAfter of a denial is then the RetryAfter of a forced call, unless the call can never pass. If
	// the state cannot hold the charge, the call is denied as without Counts. A call that shares or waits must not
	// count. For a Several, each clause has a field of its own.
	Counts bool
	// Keep is the number of units that have to remain for others after the call, from 0: a call with a positive
	// quantity that would leave less is denied, and a Partial is granted less. It must be 0 for a forced call, for a
	// Cancel, for a Lease that does not acquire, and for a Bucket that waits or has the mode Leaky or Warmup. For a
	// Several, each clause has a field of its own.
	Keep int64
	// Rank does not affect the decision: among calls that wait for room, one with a lower rank comes first.
	Rank int64

	// Next is another ask of the same command, or nil.
	Next *Ask

	// Details has the answer of each clause of a Several. The caller allocates it. Result is the
	// answer of an Admin.
	Details []limit.Decision
	Result  AdminResult
	Counted counter.Result // the answer of a Counter, in place of Decision
	// Retained has, for each clause of a Several, the remembered calls and the reservations of its key. It is part of
	// the answer if the caller allocates it; otherwise it is nil.
	Retained []Retained
}

// Clause is one limit of an RL.MULTI: a key, and exactly one of Quota, Window, Bucket and Lease, or none of
// them if it is Unlimited.
type Clause struct {
	Key      []byte
	Quota    *gcra.Quota // charged for Quantity units
	Quantity int64
	// Force charges the clause even beyond its limit; a peek ignores it. For a Quota this field is
	// enough. A Window, a Bucket or a Lease also needs the Charge or Force of its own call. If its
	// quantity is 0, a clause with Force denies nothing, unless its limit is 0.
	Force bool
	// Fixed says that a Partial takes the quantity whole or not at all, as it does with a lease.
	// The other clauses of the ask may have another quantity.
	Fixed bool
	// Counts says that the clause is charged even if the call is denied: see [Ask.Counts]. It has no effect on a lease.
	Counts bool
	// Keep is the number of units of the clause that have to remain for others: see [Ask.Keep].
	Keep int64
	// Unlimited says that the clause passes every call and stores nothing. Its key may have any
	// value.
	Unlimited bool

	Window *slidingwindow.Call
	Bucket *tokenbucket.Call
	// Index is the index of the window or bucket among the windows and buckets of a reservation:
	// see [reservation.Terms.Of].
	Index uint8
	Lease *concurrency.Call // an acquisition; if its field Peek is set, the clause refuses nothing, and the other clauses are charged
	// Peek makes the whole call a peek, which charges no clause.
	Peek bool
}

// Op says what an [AdminCall] does.
type Op uint8

// These are the operations. Scan, Count and Flush are about all keys and have no Key; the others
// are about one key.
const (
	Delete   Op = iota + 1 // DEL
	Exists                 // EXISTS and TOUCH
	Expiry                 // TTL and related commands
	Expire                 // EXPIRE and related commands; uses At and Condition
	Persist                // PERSIST
	Type                   // TYPE
	Text                   // GET: a string, or the decimal TAT of a cell; limit.ErrWrongType for other kinds
	Describe               // RL.INFO; uses By
	Members                // CC.LIST; uses After and Count
	Scan                   // SCAN; uses Cursor and Count
	Count                  // DBSIZE
	Flush                  // FLUSHDB; with --store it removes only the keys with the server's prefix
)

// AdminCall has the parameters of an ask of family [Admin].
type AdminCall struct {
	Op        Op
	At        limit.Instant // the new expiry that Expire sets
	Condition ExpireCondition
	By        any    // the limit that Describe describes, as the caller has given it; see Tell
	Cursor    uint64 // the cursor of a Scan; 0 for its first step
	Count     int    // the approximate number of keys of a step of Scan, or the maximum number of members for Members
	// After is the name of the member after which the list of Members begins; nil for the first
	// member.
	After []byte
	// Match and TypeName select which of the keys that a Scan has found appear in the reply. They
	// do not change the decision.
	Match    []byte
	TypeName string
}

// ExpireCondition is a set of the options of EXPIRE and related commands.
type ExpireCondition uint8

const (
	// ExpireIfNone (NX) allows the change only if the key never expires.
	ExpireIfNone ExpireCondition = 1 << iota
	// ExpireIfAny (XX) allows the change only if the key has an expiry.
	ExpireIfAny
	// ExpireIfLater (GT) allows only a later expiry. A key without an expiry counts as expiring
	// last.
	ExpireIfLater
	// ExpireIfEarlier (LT) allows only an earlier expiry.
	ExpireIfEarlier
)

// AdminResult is the answer to an [AdminCall]. The operation determines which fields are set.
type AdminResult struct {
	Found  bool          // whether the key existed
	Done   bool          // whether the key was deleted, or its expiry was changed
	Expiry limit.Instant // the expiry that Expiry has read, if HasExpiry is true
	// HasExpiry is true if the operation is Expiry and the key has an expiry.
	HasExpiry bool
	Text      string   // the answer of Type and of Text
	Number    int64    // the number of keys, for Count
	Fields    []Field  // the answer of Describe
	Cursor    uint64   // the cursor of the next step of Scan; 0 at the end
	Keys      []Named  // the keys that Scan has found
	Members   []Member // the members that Members has listed
	// Next is the field After for the next step of Members; nil at the end.
	Next []byte
}

// Member is a member of a lease set in the answer to Members. Its leases, of Places places, end at
// Until.
type Member struct {
	Name   []byte
	Until  limit.Instant
	Places int64
}

// Field is a field of RL.INFO: the text Text if IsText is true, otherwise the number Number.
type Field struct {
	Name, Text string
	Number     int64
	IsText     bool
}

// Named is a key that Scan has found, with the type that TYPE replies.
type Named struct {
	Key  []byte
	Type string
}

// Unavailable is the error of an ask for which there is no decision: the store has not answered in
// time, or cannot do what was asked. Its text gives the reason. The ask may have taken effect all the
// same, if only the reply to its write was lost.
type Unavailable string

// Error returns the reason why the store is not available.
func (e Unavailable) Error() string { return string(e) }

// ErrCrossSlot is the error of a [Several] whose keys are in different slots of a cluster, if the configuration does
// not allow deciding such a call key by key. ErrStatesApart is the error of a [Joint] whose states are in different
// slots, if the configuration does not allow that or the states have to be changed together: see [Divisible].
var (
	ErrCrossSlot   = errors.New("the keys are in several slots")
	ErrStatesApart = errors.New("the states are in several slots")
)

// These are errors of settlements of a reservation with a link. ErrLinked says that the store cannot read the keys that
// the link names. That is so if the [Settle] or [Joint] is decided at one instant with other asks, or if the keys
// belong to states that the run does not have: see [Reaching]. ErrOfStates is the error of a Settle about a part of a
// joint state, because only a Joint can settle such a reservation.
var (
	ErrLinked   = errors.New("the reservation is of several keys")
	ErrOfStates = errors.New("the reservation is of several states")
)

// OnlyLooks reports whether the ask changes no key, whatever the keys hold, because its quantity is
// 0 or it is a peek. It returns false for asks of the families Cancel, Admin, Counter and Joint.
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
	case Ban:
		return !a.Denied
	case Several:
		return slices.ContainsFunc(a.Clauses, func(c Clause) bool { return c.Peek }) || !slices.ContainsFunc(a.Clauses, Clause.takes)
	}
	return false
}

// quantity returns a pointer to the quantity of the clause, or nil if the clause is a lease.
func (c *Clause) quantity() *int64 {
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

// units returns a pointer to the quantity of the clause, or nil if a Partial cannot grant a part of
// it: the clause is a lease, Fixed or Unlimited.
func (c *Clause) units() *int64 {
	if c.Fixed || c.Unlimited {
		return nil
	}
	return c.quantity()
}

// takes reports whether the clause may change its key.
func (c Clause) takes() bool {
	switch {
	case c.Window != nil:
		return !windowLooks(c.Window)
	case c.Bucket != nil:
		return !bucketLooks(c.Bucket)
	case c.Lease != nil:
		return !leaseLooks(c.Lease)
	}
	return c.Quantity != 0 && !c.Unlimited
}

// counts reports whether the clause is charged even if the call is denied.
func (c *Clause) counts() bool {
	return c.Counts && c.Lease == nil && *c.quantity() > 0
}

// windowLooks reports whether the call c only peeks: it changes nothing, whatever the key holds.
func windowLooks(c *slidingwindow.Call) bool {
	return c.Charge == slidingwindow.Peek || c.Quantity == 0 && !c.Penalize
}

// bucketLooks reports whether the call c only peeks. A call with Denied is no peek, because its
// refusal is stored.
func bucketLooks(c *tokenbucket.Call) bool {
	return !c.Denied && (c.Charge == tokenbucket.Peek || c.Quantity == 0)
}

func leaseLooks(c *concurrency.Call) bool { return c.Op == concurrency.Acquire && c.Peek }

// Own makes the ask independent of the arguments of its command. It copies the bytes to which the
// ask refers: it appends them to buf, makes the ask refer to these copies, and returns the extended
// buf. It also gives a Several its own Details and copies of the clauses and their calls. It drops
// the member, the pattern, the clauses, the details and the program that the family of the ask does not use. The
// program of a Joint owns its bytes, and copies of the ask share it.
func (a *Ask) Own(buf []byte) []byte {
	own := func(b []byte) []byte {
		from := len(buf)
		buf = append(buf, b...)
		return buf[from:len(buf):len(buf)]
	}
	if a.ID.Token != nil {
		a.ID.Token = own(a.ID.Token)
	}
	if a.Reserve.Keys = slices.Clone(a.Reserve.Keys); a.Family != Several {
		a.Reserve.Keys = nil
	}
	for i, key := range a.Reserve.Keys {
		a.Reserve.Keys[i] = own(key)
	}
	if a.Key = own(a.Key); a.Family == Lease {
		a.Lease.Member = own(a.Lease.Member)
	} else {
		a.Lease.Member = nil
	}
	for _, text := range []*[]byte{&a.Admin.Match, &a.Admin.After} {
		if a.Family != Admin {
			*text = nil
		} else if *text != nil { // an empty text stands for an empty pattern or name
			*text = own(*text)
		}
	}
	if a.Family != Joint {
		a.Program, a.Others = nil, nil
	}
	a.Others = slices.Clone(a.Others)
	for i, key := range a.Others {
		a.Others[i] = own(key)
	}
	a.Settlement.Actuals = slices.Clone(a.Settlement.Actuals)
	clauses := a.Clauses
	if a.Clauses, a.Details = nil, nil; a.Family == Several {
		a.Clauses, a.Details = make([]Clause, len(clauses)), make([]limit.Decision, len(clauses))
		var member []byte // the member of the last lease; most leases of a call have the same one
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

// Bytes returns the maximum number of bytes that [Ask.Own] appends.
func (a *Ask) Bytes() int {
	n := len(a.Key) + len(a.ID.Token) + len(a.Lease.Member) + len(a.Admin.Match) + len(a.Admin.After)
	for _, key := range a.Reserve.Keys {
		n += len(key)
	}
	for _, key := range a.Others {
		n += len(key)
	}
	for i := range a.Clauses {
		n += len(a.Clauses[i].Key)
		if l := a.Clauses[i].Lease; l != nil {
			n += len(l.Member)
		}
	}
	return n
}

// Apart gives a Several its own Clauses and Details, so that several goroutines can decide asks
// that refer to the same bytes. It does nothing for other families.
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

// Forget drops the references to the key, the token, the member, the clauses, the details, the program, the other
// keys, the next ask and the texts of a counter, so that the ask can be reused for the next command.
func (a *Ask) Forget() {
	a.Key, a.Lease.Member, a.Clauses, a.Details, a.Retained, a.Next = nil, nil, nil, nil, nil, nil
	a.Reserve.Keys, a.ID.Token, a.Counter.Float, a.Counted.Texts, a.Program, a.Others = nil, nil, nil, nil, nil, nil
}

// own returns a copy of the clause that points to a copy of its call.
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
