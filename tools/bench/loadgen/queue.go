package loadgen

// request is a request that was sent and has no reply yet.
type request struct {
	// at is the instant at which the request should have been sent.
	at  int64
	key uint64
	// command is the index of the template, and pick the index of the quantity.
	command, pick uint16
}

// queue holds the requests in flight of one connection, oldest first, in a ring
// that grows as needed. The zero queue is empty.
type queue struct {
	ring []request
	head int
	n    int
}

func (q *queue) len() int { return q.n }

func (q *queue) push(r request) {
	if q.n == len(q.ring) {
		grown := make([]request, max(2*len(q.ring), 8))
		n := copy(grown, q.ring[q.head:])
		copy(grown[n:], q.ring[:q.head])
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = r
	q.n++
}

// pop removes and returns the oldest request; the queue must not be empty.
func (q *queue) pop() request {
	r := q.ring[q.head]
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return r
}
