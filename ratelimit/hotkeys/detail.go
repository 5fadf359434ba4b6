package hotkeys

import (
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// Detail describes a sampled call. It has a copy of the words of the call, because the arguments of
// the call are gone when its batch ends. The copy is in an array, so that storing a Detail
// allocates nothing.
type Detail struct {
	// Client is the ID of the caller's connection.
	Client int64
	// Command is the name of the command, in lower case.
	Command string

	retry  int64 // RetryAfter of the decision in nanoseconds; negative if waiting does not help
	words  [stats.MaxSeenArgs]byte
	length uint8 // number of bytes of words that are in use
	limit  uint8 // number of bytes at the beginning of words that give the limit
}

// Add appends word to the arguments of the call that are shown. It cuts off what exceeds
// [stats.MaxSeenArgs] bytes of arguments. A key or a member must not be added, since it may
// identify a person.
func (d *Detail) Add(word []byte) {
	n := int(d.length)
	if n > 0 && n < len(d.words) {
		d.words[n] = ' '
		n++
	}
	n += copy(d.words[n:], word)
	d.length = uint8(n)
}

// EndLimit marks the words that were added so far as those that give the limit. Calls with the same
// command and the same limit are of one kind.
func (d *Detail) EndLimit() { d.limit = d.length }

// call returns a copy of d that does not refer to the recorder's memory.
func (d *Detail) call() stats.SeenCall {
	return stats.SeenCall{Command: d.Command, Args: string(d.words[:d.length]), Limit: int(d.limit), RetryAfter: time.Duration(max(0, d.retry))}
}

// sameLimit reports whether d and o have the same command and the same limit.
func (d *Detail) sameLimit(o *Detail) bool {
	return d.limit == o.limit && d.Command == o.Command && string(d.words[:d.limit]) == string(o.words[:o.limit])
}

// callers is a ring buffer with the IDs of the latest clients that have called a key. 0 is an empty
// element.
type callers struct {
	ids  [stats.MaxSeenClients]int64
	last uint8
}

func (cs *callers) add(id int64) {
	for _, known := range cs.ids {
		if known == id {
			return
		}
	}
	cs.last = (cs.last + 1) % stats.MaxSeenClients
	cs.ids[cs.last] = id
}

// list returns the IDs of the clients. The ID that was added last is the last.
func (cs *callers) list() []int64 {
	var ids []int64
	for i := range cs.ids {
		if id := cs.ids[(int(cs.last)+1+i)%len(cs.ids)]; id != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// quietTime is the time without an occurrence of a key after which its next occurrence counts as
// the first.
const quietTime = limit.Instant(60e9)

// span has the instants of the first and of the latest occurrence of a key.
type span struct{ first, last limit.Instant }

// note adds an occurrence at the instant now.
func (t *span) note(now limit.Instant) {
	if t.first == 0 || now > t.last+quietTime {
		t.first = now
	}
	t.last = max(t.last, now)
}

// manner has the details of the newest sampled call on the key of a slot, and the latest clients of
// such calls. If known is false, callers and newest belong to an earlier key of the slot.
type manner struct {
	known   bool
	callers callers
	newest  Detail
}

// note records the call with the details d as the newest one, and adds its client to the callers.
func (m *manner) note(d *Detail) {
	if !m.known {
		m.known, m.callers = true, callers{}
	}
	m.newest = *d
	m.callers.add(d.Client)
}
