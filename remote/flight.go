package remote

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/decide"
)

// flight is the set of asks of one call of [Store.Submit].
type flight struct {
	items []item
	left  atomic.Int32 // number of items without an answer, plus one while Submit runs
	done  func()
	stop  func() bool // stops the timer of the deadline; nil if there is no timer
}

// answered records that n more items have their answers. When all have, it stops the timer of the
// deadline and calls done.
func (f *flight) answered(n int) {
	if f.left.Add(int32(-n)) > 0 {
		return
	}
	if f.stop != nil {
		f.stop()
	}
	f.done()
}

// stage is the progress of an item. The lock of the shard of its key guards it, or the lock of
// its group.
type stage uint8

const (
	_ stage = iota
	// queued means that the item waits in the queue of its key.
	queued
	// batched means that the item's exchange is running and may decide it again. No write is in
	// progress.
	batched
	// writing means that a write that depends on the item's decision is in progress.
	writing
	// answered means that the ask has its answer, or that the policy is about to answer it.
	answered
)

// item is an ask on its way through the store, or a hold in the queue of a key.
type item struct {
	ask        *decide.Ask
	flight     *flight // the flight of the ask; nil for an internal ask of the store
	place      *place  // the place of the key; nil if the ask is about all keys or in a group
	prev, next *item   // the neighbours of the item in the queue of place
	hold       *hold   // the turn of a group, for an item without an ask; otherwise nil
	group      owner   // the group of an RL.MULTI, or of an ask that is decided together with others; otherwise nil
	stage      stage
	// abandoned says that the policy has answered the ask while a write was in progress. Then the
	// field ask is a copy that belongs to the item. refundDue says that the charge of the ask has
	// to be given back if the write was done.
	abandoned, refundDue bool
}

// owner is the group to which an item belongs. The lock of the owner guards the item.
type owner interface {
	// abandon removes an item from the group, and returns its ask, or nil if the item was
	// answered.
	abandon(it *item) *decide.Ask
}

// live reports whether a client waits for the answer of the item.
func (it *item) live() bool { return it.flight != nil && it.stage != answered && !it.abandoned }

// own reports whether the ask of the item is an internal one of the store, such as a refund.
func (it *item) own() bool { return it.flight == nil }

// detach gives the item a copy of its ask with the decided answer, and returns the original, so
// that the original can be answered differently. The item counts as abandoned.
func (it *item) detach() (theirs *decide.Ask) {
	theirs = it.ask
	own := *theirs
	own.Own(nil)
	own.Next, own.Details, own.Program = nil, nil, nil // the copy gets no program, which belongs to the original
	it.ask, it.abandoned = &own, true
	return theirs
}

// place has the items about one key that wait. mu guards the place and the stage of its items.
type place struct {
	mu    *sync.Mutex
	queue queue
	// basis is the value on which the write in progress was decided.
	basis *value
}

// queue has the items that wait for the present exchange of the key to end, in the order of their
// arrival. Only holds that prolong a lease are put at the front.
type queue struct {
	first, last *item
	// freeing is the number of items in the queue that may free units.
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

// remove removes an item, which must be in the queue.
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

// mayFree reports whether deciding the item may free units. For a hold this is unknown, and
// mayFree returns true.
func (it *item) mayFree() bool { return it.hold != nil || !takes(it.ask) }

// hold is the turn of a group at its keys. A hold is an item in the queue of each key. When it
// becomes first in a queue, the exchange of that key ends and leaves the key to the group. The turn
// begins when the hold has become first in all queues.
type hold struct {
	// missing is the number of queues in which the hold is not first yet. When it is 0, ready is
	// called.
	missing atomic.Int32
	ready   func()
}

// arrived records that the hold has become first in one more queue.
func (h *hold) arrived() {
	if h.missing.Add(-1) == 0 {
		h.ready()
	}
}
