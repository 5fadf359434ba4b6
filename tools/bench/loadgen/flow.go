package loadgen

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// plan has the parameters of a run that all of its flows share.
type plan struct {
	mix *Mix
	// ledgers has one ledger for each charge of each template, nil if nothing is checked.
	ledgers [][]*ledger
	// firstKey is added to the numbers that a keySource returns.
	firstKey uint64
	// pipeline is the size of a batch in a closed loop.
	pipeline int
	// Only requests that are due at or after the instant from are measured. No request is due at or
	// after the instant until.
	from, until int64
	// stopped is set to stop sending early.
	stopped atomic.Bool
}

// over reports whether sending has ended at the instant now. An open loop passes the instant at
// which a request should leave: a request that was due in time is sent even if it is late.
// Otherwise the requests held up by a stall at the end would not count.
func (p *plan) over(now int64) bool { return now >= p.until || p.stopped.Load() }

// flow is the traffic of one connection. It belongs to one goroutine.
type flow struct {
	plan *plan
	rec  *recorder
	r    *rand.Rand
	keys keySource
	// seq is the next number for {seq}. Each flow adds seqStep, the number of flows, so that the
	// numbers of flows differ.
	seq, seqStep uint64
	// left is the number of counting requests that the flow may still send.
	left int64

	// out are encoded requests that the connection has not taken yet. in are received bytes that
	// are not parsed yet.
	out, in []byte
	waiting queue
	reply   reply
}

// newFlow returns the flow with the number index, from 0, of as many flows as flows says. left is
// the number of counting requests that it may send.
func newFlow(p *plan, rec *recorder, seed uint64, keys KeySpec, index, flows int, left int64) *flow {
	r := rand.New(rand.NewPCG(seed, uint64(index)))
	return &flow{
		plan: p, rec: rec, r: r, keys: keys.source(r, index, flows),
		seq: uint64(index), seqStep: uint64(flows), left: left,
	}
}

// batch encodes the next batch of a closed loop if all replies to the last batch have arrived and
// sending has not ended. A batch has fewer requests if the flow may not send that many any more.
func (f *flow) batch(now int64) {
	if f.waiting.len() > 0 || f.plan.over(now) {
		return
	}
	for range f.plan.pipeline {
		if f.left <= 0 {
			return
		}
		f.enqueue(now)
	}
}

// follow encodes the next request of an open loop, and records the delay with which it leaves.
func (f *flow) follow(p *pace, now int64) {
	at := p.next()
	p.take()
	if at >= f.plan.from {
		f.rec.left(now - at)
	}
	f.enqueue(at)
}

// enqueue encodes one request that should leave at the instant at.
func (f *flow) enqueue(at int64) {
	if at >= f.plan.from {
		f.left--
	}
	command, pick := f.plan.mix.draw(f.r)
	key := f.keys.next()
	f.out = f.plan.mix.templates[command].append(f.out, key+f.plan.firstKey, f.seq, pick)
	f.seq += f.seqStep
	f.waiting.push(request{at: at, key: key, command: uint16(command), pick: uint16(pick)})
}

// finished reports whether the flow has sent all its requests and received all replies. over says
// that sending has ended.
func (f *flow) finished(over bool) bool {
	return f.waiting.len() == 0 && (over || f.left <= 0)
}

// wrote notes that the connection took the first n bytes of out.
func (f *flow) wrote(n int) {
	f.out = f.out[:copy(f.out, f.out[n:])]
}

// receive processes the complete replies in f.in, which arrived at now. It returns an error for
// bytes that are no reply, and for a reply to no request.
func (f *flow) receive(now int64) error {
	f.rec.mu.Lock()
	defer f.rec.mu.Unlock()
	at, replies := 0, int64(0)
	for at < len(f.in) {
		n, err := scanReply(f.in[at:], &f.reply)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		at += n
		if f.reply.isPush() {
			continue
		}
		if f.waiting.len() == 0 {
			return fmt.Errorf("%w: a reply came that nothing was sent for", errProtocol)
		}
		f.judge(f.waiting.pop(), now)
		replies++
	}
	f.in = f.in[:copy(f.in, f.in[at:])]
	f.rec.completed.Add(replies)
	return nil
}

// judge processes f.reply, the reply to q, which arrived at now.
func (f *flow) judge(q request, now int64) {
	counts := q.at >= f.plan.from
	t := &f.rec.tallies[q.command]
	if counts {
		f.rec.record(int(q.command), now-q.at, now)
	}
	template := f.plan.mix.templates[q.command]
	switch {
	case f.reply.isError():
		if counts {
			t.errors++
		}
		if t.firstError == "" {
			t.firstError = string(f.reply.text)
		}
	case template.limit != nil:
		f.judgeDecision(q, now, template, t, counts)
	}
}

// judgeDecision processes the reply of a limiter: limited, limit, remaining, retry after and reset
// after.
func (f *flow) judgeDecision(q request, now int64, template *Template, t *tally, counts bool) {
	if f.reply.kind != '*' || f.reply.length != 5 || f.reply.n != 5 || !template.limit.shows(f.reply.ints[1]) {
		t.malformed++
		if t.firstMalformed == "" {
			t.firstMalformed = fmt.Sprintf("%q replied %v of type %q, not five integers with the limit %d",
				template.text, f.reply.ints[:f.reply.n], f.reply.kind, template.limit.Most)
		}
		return
	}
	refused := f.reply.ints[0]
	if counts {
		if refused == 0 {
			t.allowed++
		} else {
			t.denied++
		}
	}
	for i := range template.charges {
		limit := template.charges[i].limit
		asked := limit.asks
		if asked == drawn {
			asked = max(template.quantity(int(q.pick)), 0)
		}
		granted := asked
		switch {
		case limit.partial:
			granted = asked - min(refused, asked)
		case refused != 0:
			granted = 0
		}
		if counts {
			t.granted += granted
		}
		if ledgers := f.plan.ledgers[q.command]; ledgers != nil && !limit.free {
			ledgers[i].settle(&q, now, limit, asked, granted)
		}
	}
}

// room returns the free part of f.in, into which the driver reads.
func (f *flow) room() []byte {
	const least = 4 << 10
	if cap(f.in)-len(f.in) < least {
		grown := make([]byte, len(f.in), max(2*cap(f.in), readSize))
		copy(grown, f.in)
		f.in = grown
	}
	return f.in[len(f.in):cap(f.in)]
}

// got notes that n bytes were read into room.
func (f *flow) got(n int) { f.in = f.in[:len(f.in)+n] }

const (
	readSize = 16 << 10
	// shortWait is the minimum time for which an open loop waits for replies, so that it reads even
	// when it lags behind its schedule. longWait is the maximum time, so that the loop notices the
	// end of the run.
	shortWait = 50 * time.Microsecond
	longWait  = 50 * time.Millisecond
	// maxWaiting limits the requests in flight per connection in an open loop. Requests that have
	// to wait for that keep their instants, so they count as late.
	maxWaiting = 1 << 16
)
