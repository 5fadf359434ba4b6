package cluster

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/decide"
)

// flight is what was submitted at once.
type flight struct {
	items []item
	left  atomic.Int32 // items that have no answer yet, and one while it is being submitted
	done  func()
	stop  func() bool // of the timer that ends it; nil without one
}

// answered says that n items more have their answers.
func (f *flight) answered(n int) {
	if f.left.Add(int32(-n)) > 0 {
		return
	}
	if f.stop != nil {
		f.stop()
	}
	f.done()
}

// stage is how far an item has come. It changes under the lock of the shard of its key, or
// of its group.
type stage uint8

const (
	_ stage = iota
	// queued: it waits in the queue of its key.
	queued
	// batched: its exchange is under way and may be decided again; nothing is being written.
	batched
	// writing: a write that was decided with it is under way.
	writing
	// answered: its ask belongs to the asker again.
	answered
)

// item is an ask on its way through the store, or a hold in the queue of a key.
type item struct {
	ask        *decide.Ask
	flight     *flight // nil for an ask of the store itself
	place      *place  // of its key; nil if it is about none, or several
	prev, next *item   // in that queue
	hold       *hold   // instead of an ask
	group      owner   // of an ask that is decided with others; nil for most
	stage      stage
	// abandoned says that the policy has answered while a write was under way. The ask is
	// then a copy of the item's own, and refundDue says that what it turns out to have charged
	// is to be given back.
	abandoned, refundDue bool
}

// owner is a group, whose lock guards its items.
type owner interface {
	// abandon takes an item away from the group, and returns its ask; nil if it was
	// answered.
	abandon(it *item) *decide.Ask
}

// live reports whether somebody waits for the answer.
func (it *item) live() bool { return it.flight != nil && it.stage != answered && !it.abandoned }

// own reports whether the ask is the store's own.
func (it *item) own() bool { return it.flight == nil }

// detach gives the item a copy of its ask, with the answer that was decided, so that the ask
// itself can be answered otherwise.
func (it *item) detach() (theirs *decide.Ask) {
	theirs = it.ask
	own := *theirs
	own.Own(nil)
	own.Next, own.Details = nil, nil
	it.ask, it.abandoned = &own, true
	return theirs
}

// place is where the items about one key wait. mu guards it, and the stage of its items.
type place struct {
	mu    *sync.Mutex
	queue queue
	// basis is what the write under way was decided on.
	basis *value
}

// queue is the items that wait for the exchange before them.
type queue struct {
	first, last *item
	// freeing is how many of them may leave more room than there was.
	freeing int
}

func (q *queue) push(it *item) {
	it.stage = queued
	it.prev = q.last
	if q.last == nil {
		q.first = it
	} else {
		q.last.next = it
	}
	q.last = it
	if it.mayFree() {
		q.freeing++
	}
}

// pushFirst puts an item before all others.
func (q *queue) pushFirst(it *item) {
	it.stage = queued
	it.next = q.first
	if q.first == nil {
		q.last = it
	} else {
		q.first.prev = it
	}
	q.first = it
	if it.mayFree() {
		q.freeing++
	}
}

func (q *queue) remove(it *item) {
	if it.prev == nil {
		q.first = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		q.last = it.prev
	} else {
		it.next.prev = it.prev
	}
	it.prev, it.next = nil, nil
	if it.mayFree() {
		q.freeing--
	}
}

// mayFree reports whether there may be more room once the item was decided.
func (it *item) mayFree() bool { return it.hold != nil || !takes(it.ask) }

// hold is the turn of a group at its keys: each comes to the front of its queue and waits
// there for the others.
type hold struct {
	missing atomic.Int32
	ready   func()
}

// arrived says that one more key is at its turn.
func (h *hold) arrived() {
	if h.missing.Add(-1) == 0 {
		h.ready()
	}
}
