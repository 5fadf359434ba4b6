package cluster

import "time"

// memory is what a server remembers of a key. It is no cache of answers: it saves the read of
// a key that nobody else writes, finds out that the engine has lost writes, and knows what
// is to be given back.
type memory struct {
	// known says that value is what the engine was last seen to have: the zero value if
	// there was no such key.
	known bool
	value value
	// others is how many other servers wrote between the last two looks that found any;
	// sharedAt is when that was.
	others   int
	sharedAt time.Duration
	// notBefore is when the next exchange may begin, so that others get their turns.
	notBefore time.Duration

	denial    *denial
	unsettled []*unsettledWrite
	// back is the unsettled write that the value is of: then all is to be as it was before.
	back *unsettledWrite
	// refunds are asks of the store itself: they give back what unsettled writes were found to have
	// charged.
	refunds []*item
}

// unsettledWrite is a write during which asks were answered by the policy. If it was done, what they
// have charged is to be given back.
type unsettledWrite struct {
	tag tag   // of the write, 0 if it deleted the key
	old value // what it replaced
	// items were answered with an error. whole says that nothing else was in the write.
	items []*item
	whole bool
	// sure says that the write is known to have been done.
	sure bool
	// again are asks of the store itself that were in the write: they are to be decided
	// again if it was not done.
	again []*item
}

// asks is how many asks the write is about.
func (d *unsettledWrite) asks() int64 { return int64(len(d.items) + len(d.again)) }

// mostUnsettled bounds what is remembered of one key. Each took an exchange that ended without
// an answer of the engine.
const mostUnsettled = 16

const (
	// quiet is for how long nobody else may have written to a key that is written to
	// without a look.
	quiet = 100 * time.Millisecond
	// longestGap is the longest that a writer leaves to others.
	longestGap = 5 * time.Millisecond
)

// shared reports whether others write to the key, too.
func (m *memory) shared(elapsed time.Duration) bool {
	return m.others > 0 && elapsed-m.sharedAt < quiet
}

// idle reports whether there is nothing to remember.
func (m *memory) idle() bool {
	return m.value.raw == nil && m.denial == nil && len(m.unsettled) == 0 && m.back == nil && len(m.refunds) == 0
}

// observe takes in what the engine has now. lost reports whether that is older than what it
// had: then what is remembered stands.
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

// countOthers counts who else has written since the last look.
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

// wrote takes in that v, a write of this server that took rtt, was done.
func (m *memory) wrote(c *core, v *value, rtt time.Duration) {
	if m.back != nil {
		m.giveBack(c, m.back, v)
		m.back = nil
	}
	m.known, m.value, m.denial = true, *v, nil
	// What was in doubt before would have changed what this write has replaced.
	for _, d := range m.unsettled {
		m.refunds = append(m.refunds, d.again...)
	}
	clear(m.unsettled)
	m.unsettled = m.unsettled[:0]
	if elapsed := c.timing.Elapsed(); m.shared(elapsed) {
		m.notBefore = elapsed + min(rtt*time.Duration(m.others+1)/2, longestGap)
	}
}

// noteUnsettled notes such a write.
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

// refundsDue reports whether something is to be given back as soon as can be.
func (m *memory) refundsDue() bool {
	for _, d := range m.unsettled {
		if d.sure {
			return true
		}
	}
	return m.back != nil || len(m.refunds) > 0
}

// settle finds out from v, which is what counts now, which unsettled writes were done, and notes what
// is to be given back.
func (m *memory) settle(c *core, v *value) {
	if m.back != nil {
		m.unsettled, m.back = append(m.unsettled, m.back), nil
	}
	open := m.unsettled[:0]
	for _, d := range m.unsettled {
		switch outcomeOf(d.tag, &d.old, v) {
		case undecided:
			if d.sure { // and lost since, with what it has charged
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

// outcome is what became of a write.
type outcome uint8

const (
	undecided outcome = iota // it may still happen
	done
	notWritten // and never will be
	lost       // nobody can tell
)

// outcomeOf finds out from v, which the engine has now, what became of the write t of this server
// that was to replace old. t is 0 if it was to delete the key.
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
		return notWritten // an earlier write of this server is its latest there
	case t == 0 || v.full():
		return lost
	}
	return notWritten
}

// giveBack notes refunds of what the asks of d have charged, as far as v tells that it is still
// there.
func (m *memory) giveBack(c *core, d *unsettledWrite, v *value) {
	for _, it := range d.items {
		if a := refund(it.ask, v, c.timing.Now(), v.tag == d.tag); a != nil {
			m.refunds = append(m.refunds, &item{ask: a, place: it.place})
			continue
		}
		c.count.kept.Add(1)
	}
}
