package ratelimit

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Event is the kind of event that a [Notice] reports.
type Event uint8

// These are the events of a key under a policy with NOTIFY.
const (
	// Marked says that the calls have used the share of a limit that NOTIFY names.
	Marked Event = iota
	// Denied says that a limit denies a call.
	Denied
	events
)

// String returns "mark" or "denied".
func (e Event) String() string { return [events]string{"mark", "denied"}[e] }

// Notice reports an event of a key. The same event is reported only once in each window.
type Notice struct {
	Event Event
	// Policy is the name of the policy. Key is the key whose state is used, which is a network for a policy with KEY
	// IP. DB is the index of the database.
	Policy, Key string
	DB          int
	// Clause is the text of the clause that the event is about. Limit is its limit, and Used the units that are in use.
	// ResetAfter is the time until none is in use. The event is not reported again within that time.
	Clause      string
	Limit, Used int64
	ResetAfter  time.Duration
	// Passes says that the call passes although the limits deny it, because of SHADOW or an exemption.
	Passes bool
}

const (
	// noticeSets and noticeWays are the size of the table of reported events: the number of sets, and of places in
	// each. An event takes one place.
	noticeSets, noticeWays = 4096, 4
	// maxNotices is the maximum number of notices that are not delivered yet.
	maxNotices = 1024
	// noticePause and noticeBurst bound the rate of notices of a policy: one in each noticePause on average, and
	// noticeBurst/noticePause at once.
	noticePause, noticeBurst = 10 * time.Millisecond, time.Second
	// leastWindow is the minimum time between two notices of the same event.
	leastWindow = time.Second
)

// Notices delivers notices of the events of all keys. An event is reported once in a window, which ends when the units
// of the clause are free again or, if none is in use, after the length of the clause's window. The table of events
// takes 256 KiB; beyond 16,384 events it forgets those whose windows end first. A policy may have 100 notices at once,
// and 100 per second. If 1,024 notices wait for delivery, further ones are left out. The next call of the key tries
// again to report an event that was left out. Any goroutine may use it. The zero value is not usable.
type Notices struct {
	deliver func(Notice)
	spawn   func(func())
	seed    maphash.Seed

	delivered, leftOut atomic.Int64

	mu      sync.Mutex
	table   *[noticeSets][noticeWays]noticed // the table of reported events; nil before the first one; guarded by mu
	paces   [256]limit.Instant               // the instant of the next notice of a policy, by the hash of its name; guarded by mu
	queue   []Notice                         // the notices that wait for delivery; guarded by mu
	waiting int                              // number of notices in queue and in delivery; guarded by mu
}

// noticed is an event in the table. It is not reported again before until.
type noticed struct {
	hash  uint64
	until limit.Instant
}

// NewNotices returns Notices that calls deliver for one notice at a time. spawn runs a function on another goroutine.
func NewNotices(spawn func(func()), deliver func(Notice)) *Notices {
	return &Notices{deliver: deliver, spawn: spawn, seed: maphash.MakeSeed()}
}

// Delivered returns the number of notices that were delivered.
func (n *Notices) Delivered() int64 { return n.delivered.Load() }

// LeftOut returns the number of notices that were not delivered, because too many were waiting.
func (n *Notices) LeftOut() int64 { return n.leftOut.Load() }

// place returns the place in the table for the event with the given hash; nil if the event was reported before in its
// window.
func (n *Notices) place(hash uint64, now limit.Instant) *noticed {
	if n.table == nil {
		n.table = new([noticeSets][noticeWays]noticed)
	}
	set := &n.table[hash%noticeSets]
	first := &set[0]
	for i := range set {
		switch is := &set[i]; {
		case is.hash == hash && is.until > now:
			return nil
		case is.hash == hash:
			return is
		case is.until < first.until:
			first = is
		}
	}
	return first
}

// add delivers the result of notice, unless the event was reported before in its window, which ends at until. policy is
// the hash of the policy.
func (n *Notices) add(policy, hash uint64, now, until limit.Instant, notice func() Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	place := n.place(hash, now)
	if place == nil {
		return
	}
	due := &n.paces[policy%uint64(len(n.paces))]
	next := max(*due, now)
	if n.waiting >= maxNotices || next > now.Add(noticeBurst-noticePause) {
		n.leftOut.Add(1)
		return
	}
	*due = next.Add(noticePause)
	*place = noticed{hash, until}
	n.queue = append(n.queue, notice())
	if n.waiting++; n.waiting == 1 {
		n.spawn(n.deliverAll)
	}
}

// deliverAll delivers the notices of the queue, until it is empty.
func (n *Notices) deliverAll() {
	for done := 0; ; {
		n.mu.Lock()
		n.waiting -= done
		queue := n.queue
		n.queue = nil
		n.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for i := range queue {
			n.deliver(queue[i])
			n.delivered.Add(1)
		}
		done = len(queue)
	}
}

// tell delivers a notice for each clause that denies the call of l or that has reached the mark of the policy. details
// are the decisions of the limits on the clauses, at now. A nil Notices delivers nothing.
func (n *Notices) tell(l *Lookup, now limit.Instant, details []limit.Decision) {
	mark := l.Rules.Main.Notify
	if n == nil || mark == 0 || l.Looks() || l.Quantity < 0 {
		return
	}
	for i := range details {
		switch d := &details[i]; {
		case l.denies(i, d):
			n.event(l, Denied, i, d, now)
		case d.Limit > 0 && reaches(d, mark):
			n.event(l, Marked, i, d, now)
		}
	}
}

// denies reports whether d, the decision on clause i of the limits, grants no units to the call.
func (l *Lookup) denies(i int, d *limit.Decision) bool {
	return d.Refused > 0 && (l.Mode != Partial || d.Refused >= l.quantity(i, &l.Limits.Clauses[i]))
}

// reaches reports whether the units that d leaves in use are at least percent of the limit.
func reaches(d *limit.Decision, percent int64) bool {
	used := d.Limit - d.Remaining
	return used >= limit.MulDivCeil(d.Limit, percent, 100)
}

// event delivers a notice of an event of clause i, counted from 0. d is the decision on the clause
// at now.
func (n *Notices) event(l *Lookup, e Event, i int, d *limit.Decision, now limit.Instant) {
	window := d.ResetAfter
	if window <= 0 {
		window = l.Limits.Clauses[i].Length(d.Limit, now)
	}
	ofPolicy := maphash.Bytes(n.seed, l.Policy)
	n.add(ofPolicy, n.hash(l, e, i, d), now, now.Add(max(window, leastWindow)), func() Notice {
		return Notice{
			Event: e, Policy: l.Rules.Name, Key: string(l.state()), DB: l.DB, Clause: l.Limits.Text[i], Limit: d.Limit,
			Used: d.Limit - d.Remaining, ResetAfter: d.ResetAfter, Passes: e == Denied && l.Lenient(),
		}
	})
}

// hash returns the hash of an event of clause i under the limits of l. A changed clause or limit makes another event.
func (n *Notices) hash(l *Lookup, e Event, i int, d *limit.Decision) uint64 {
	var h maphash.Hash
	h.SetSeed(n.seed)
	var numbers [18]byte
	binary.LittleEndian.PutUint64(numbers[:], uint64(d.Limit))
	binary.LittleEndian.PutUint64(numbers[8:], uint64(l.DB))
	numbers[16], numbers[17] = byte(e), byte(i)
	_, _ = h.Write(numbers[:]) // Write of a hash never fails
	_, _ = h.Write(l.Policy)
	_ = h.WriteByte(0) // a NUL separates the two texts, since neither contains one
	_, _ = h.WriteString(l.Limits.Text[i])
	_ = h.WriteByte(0)
	_, _ = h.Write(l.state())
	return h.Sum64()
}
