package cluster

import "time"

// memory is what a server remembers of a key. It is not a cache of answers: it saves the read of a
// key that no other server writes, detects that the engine has lost writes, and knows the charges
// to be given back.
type memory struct {
	// known says that value is the last known value in the engine: the zero value for an absent
	// key.
	known bool
	value value
	// others is the number of other servers that wrote between the last two reads that found any;
	// sharedAt is the time of that.
	others   int
	sharedAt time.Duration
	// notBefore is the earliest start of the next exchange, so that other servers get their turns.
	notBefore time.Duration

	denial    *denial
	unsettled []*unsettledWrite
	// back is the unsettled write that made the value: it has to be undone completely.
	back *unsettledWrite
	// refunds are internal asks: they give back charges of unsettled writes that turned out to be
	// done.
	refunds []*item
}

// unsettledWrite is a write during which the policy answered asks. If the write was done, their
// charges have to be given back.
type unsettledWrite struct {
	tag tag   // of the write, 0 if it deleted the key
	old value // what it replaced
	// items were answered with an error. whole says that the write had no other asks.
	items []*item
	whole bool
	// sure says that the write is known to have been done.
	sure bool
	// again are internal asks that were in the write: they are decided again if it was not done.
	again []*item
}

// asks returns the number of asks in the write.
func (d *unsettledWrite) asks() int64 { return int64(len(d.items) + len(d.again)) }

// mostUnsettled is the maximum number of unsettled writes remembered per key. Each comes from an
// exchange that ended without an answer of the engine.
const mostUnsettled = 16

const (
	// quiet is the time without a write by another server after which a key is written without a
	// read.
	quiet = 100 * time.Millisecond
	// longestGap is the longest gap that a server leaves for others after its write.
	longestGap = 5 * time.Millisecond
)

// shared reports whether other servers write the key, too.
func (m *memory) shared(elapsed time.Duration) bool {
	return m.others > 0 && elapsed-m.sharedAt < quiet
}

// idle reports whether there is nothing to remember.
func (m *memory) idle() bool {
	return m.value.raw == nil && m.denial == nil && len(m.unsettled) == 0 && m.back == nil && len(m.refunds) == 0
}

// observe takes in v, the present value in the engine. lost reports whether v is older than the
// remembered value, which is kept then.
func (m *memory) observe(c *core, v *value) (lost bool) {
	if m.known && v.raw != nil && v.stamp < m.value.stamp && m.value.raw != nil {
		c.count.repaired.Add(1)
		m.settle(c, &m.value)
		return true
	}
	m.settle(c, v)
	m.countOthers(c, v)
	if !sameWrite(v.raw, m.value.raw) {
		m.denial = nil
	}
	m.known, m.value = true, *v
	return false
}

// countOthers counts the other servers that have written since the last read.
func (m *memory) countOthers(c *core, v *value) {
	if sameWrite(v.raw, m.value.raw) || v.raw == nil {
		return
	}
	others := 0
	if m.known {
		v.writers(func(one tag) bool {
			if one.writer() != c.writer && !m.value.has(one) {
				others++
			}
			return true
		})
	} else if v.tag.writer() != c.writer && c.timing.Now().Sub(v.stamp) < quiet {
		others = 1
	}
	if others > 0 {
		m.others, m.sharedAt = others, c.timing.Elapsed()
	}
}

// wrote takes in v, a completed write of this server that took rtt.
func (m *memory) wrote(c *core, v *value, rtt time.Duration) {
	if m.back != nil {
		m.giveBack(c, m.back, v)
		m.back = nil
	}
	m.known, m.value, m.denial = true, *v, nil
	// A write that was in doubt was not done: it would have changed the value that this write has
	// replaced.
	for _, d := range m.unsettled {
		m.refunds = append(m.refunds, d.again...)
	}
	clear(m.unsettled)
	m.unsettled = m.unsettled[:0]
	if elapsed := c.timing.Elapsed(); m.shared(elapsed) {
		m.notBefore = elapsed + min(rtt*time.Duration(m.others+1)/2, longestGap)
	}
}

// noteUnsettled remembers an unsettled write.
func (m *memory) noteUnsettled(c *core, d *unsettledWrite) {
	if len(d.items) == 0 && len(d.again) == 0 {
		return
	}
	if len(m.unsettled) == mostUnsettled {
		c.count.unknown.Add(m.unsettled[0].asks())
		m.unsettled = m.unsettled[:copy(m.unsettled, m.unsettled[1:])]
	}
	m.unsettled = append(m.unsettled, d)
}

// refundsDue reports whether a charge has to be given back as soon as possible.
func (m *memory) refundsDue() bool {
	for _, d := range m.unsettled {
		if d.sure {
			return true
		}
	}
	return m.back != nil || len(m.refunds) > 0
}

// settle determines from the current value v which unsettled writes were done, and notes the
// charges to be given back.
func (m *memory) settle(c *core, v *value) {
	if m.back != nil {
		m.unsettled, m.back = append(m.unsettled, m.back), nil
	}
	open := m.unsettled[:0]
	for _, d := range m.unsettled {
		switch outcomeOf(d.tag, &d.old, v) {
		case undecided:
			if d.sure { // lost since, together with its charges
				c.count.undone.Add(int64(len(d.items)))
				continue
			}
			open = append(open, d)
		case done:
			if d.whole && v.tag == d.tag {
				m.back = d
				continue
			}
			m.giveBack(c, d, v)
		case lost:
			c.count.unknown.Add(d.asks())
		case notWritten:
			m.refunds = append(m.refunds, d.again...)
		}
	}
	clear(m.unsettled[len(open):])
	m.unsettled = open
}

// outcome is the outcome of a write.
type outcome uint8

const (
	undecided outcome = iota // it may still happen
	done
	notWritten // and never will be done
	lost       // cannot be determined
)

// outcomeOf determines from v, the present value in the engine, the outcome of this server's write
// t, which was to replace old. t is 0 if it was to delete the key.
func outcomeOf(t tag, old, v *value) outcome {
	switch {
	case sameWrite(old.raw, v.raw):
		return undecided
	case t == 0 && v.raw == nil:
		return done
	case t == 0 && v.has(old.tag):
		return notWritten
	case t != 0 && v.has(t):
		return done
	case t != 0 && v.wroteOf(t.writer()):
		return notWritten // an earlier write of this server is its latest in v
	case t == 0 || v.full():
		return lost
	}
	return notWritten
}

// giveBack notes refunds of the charges of d's asks, as far as v shows that they still exist.
func (m *memory) giveBack(c *core, d *unsettledWrite, v *value) {
	for _, it := range d.items {
		if a := refund(it.ask, v, c.timing.Now(), v.tag == d.tag); a != nil {
			m.refunds = append(m.refunds, &item{ask: a, place: it.place})
			continue
		}
		c.count.kept.Add(1)
	}
}
