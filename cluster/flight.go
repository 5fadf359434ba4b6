package cluster

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/decide"
)

// flight is the set of asks of one Submit.
type flight struct {
	items []item
	left  atomic.Int32 // items without an answer, plus one during Submit
	done  func()
	stop  func() bool // stops the timer of the deadline; nil without one
}

// answered says that n more items have their answers.
func (f *flight) answered(n int) {
	if f.left.Add(int32(-n)) > 0 {
		return
	}
	if f.stop != nil {
		f.stop()
	}
	f.done()
}

// stage is the progress of an item. The lock of the shard of its key, or of its group, guards it.
type stage uint8

const (
	_ stage = iota
	// queued: the item waits in the queue of its key.
	queued
	// batched: the item's exchange is running and may decide it again; no write is in progress.
	batched
	// writing: a write with the decision on the item is in progress.
	writing
	// answered: the ask belongs to the caller of Submit again.
	answered
)

// item is an ask on its way through the store, or a hold in the queue of a key.
type item struct {
	ask        *decide.Ask
	flight     *flight // nil for an internal ask of the store
	place      *place  // of its key; nil if it has no key, or several
	prev, next *item   // neighbours in that queue
	hold       *hold   // instead of an ask
	group      owner   // set for an ask that is decided with others; nil for most
	stage      stage
	// abandoned says that the policy has answered while a write was in progress. Then ask is a copy
	// that belongs to the item, and refundDue says that its charge, if the write was done, has to
	// be given back.
	abandoned, refundDue bool
}

// owner is a group; its lock guards its items.
type owner interface {
	// abandon takes an item away from the group, and returns its ask, or nil if it was answered.
	abandon(it *item) *decide.Ask
}

// live reports whether a client waits for the answer.
func (it *item) live() bool { return it.flight != nil && it.stage != answered && !it.abandoned }

// own reports whether the ask is an internal one of the store.
func (it *item) own() bool { return it.flight == nil }

// detach gives the item a copy of its ask with the decided answer, so that the original can be
// answered differently.
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
	// basis is the value on which the present write was decided.
	basis *value
}

// queue has the items that wait for the present exchange to end.
type queue struct {
	first, last *item
	// freeing is the number of items that may free units.
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

// pushFirst puts an item at the front.
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

// mayFree reports whether deciding the item may free units.
func (it *item) mayFree() bool { return it.hold != nil || !takes(it.ask) }

// hold is the turn of a group at its keys: a hold comes to the front of each queue and waits there
// until it is at the front of all.
type hold struct {
	missing atomic.Int32
	ready   func()
}

// arrived says that the hold has reached the front of one more queue.
func (h *hold) arrived() {
	if h.missing.Add(-1) == 0 {
		h.ready()
	}
}
