package replication

import (
	"time"

	"github.com/cellserver/cellserver/transport"
)

// waiting is somebody who waits for replicas to have everything before offset.
type waiting struct {
	offset uint64
	since  time.Duration // by the stopwatch
	p      transport.Peer
}

// line has those who wait for the same number of replicas, as a binary heap: the first is
// the one with the least offset. Offsets come in about the order of the stream, in which
// push is constant work; an acknowledgement looks at nobody but whom it wakes and one more.
type line []waiting

// push adds w.
func (l line) push(w waiting) line {
	l = append(l, w)
	for i := len(l) - 1; i > 0; {
		parent := (i - 1) / 2
		if l[parent].offset <= l[i].offset {
			break
		}
		l[parent], l[i] = l[i], l[parent]
		i = parent
	}
	return l
}

// pop removes the first.
func (l line) pop() line {
	last := len(l) - 1
	l[0], l[last] = l[last], waiting{}
	l = l[:last]
	l.sink(0)
	return l
}

// sink moves what is at i behind what comes before it.
func (l line) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(l); child++ {
			if l[child].offset < l[least].offset {
				least = child
			}
		}
		if least == i {
			return
		}
		l[i], l[least] = l[least], l[i]
		i = least
	}
}

// order makes a heap of any order.
func (l line) order() {
	for i := len(l)/2 - 1; i >= 0; i-- {
		l.sink(i)
	}
}
