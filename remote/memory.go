package remote

import "time"

// memory is the data that a server remembers about a key. It saves the read of a key that no other
// server writes, shows that the engine has lost writes, and has the charges to be given back.
type memory struct {
	// known says that value is the last known value in the engine: the zero value if the key was
	// absent.
	known bool
	value value
	// others is the number of other servers whose writes were found by the last read that found
	// any. sharedAt is the stopwatch reading of that read.
	others   int
	sharedAt time.Duration
	// notBefore is the earliest stopwatch reading for the start of the next exchange, so that other
	// servers get their turns.
	notBefore time.Duration

	denial    *denial
	unsettled []*unsettledWrite
	// back is the unsettled write that stored value; nil if there is none. It has to be undone
	// completely.
	back *unsettledWrite
	// refunds are internal asks. They give back charges of unsettled writes that were found to be
	// done.
	refunds []*item
}

// unsettledWrite is a write during which the policy answered asks with an error. If the write was
// done, the charges of these asks have to be given back.
type unsettledWrite struct {
	tag tag   // the tag of the write, 0 if the write deleted the key
	old value // the value that the write replaced
	// items are the asks that the policy answered. whole says that the write was for no other
	// asks, so that it can be undone by storing old.
	items []*item
	whole bool
	// sure says that the write was certainly done.
	sure bool
	// again are internal asks that were decided in the write. They are decided again if the write
	// was not done.
	again []*item
}

func (d *unsettledWrite) asks() int64 { return int64(len(d.items) + len(d.again)) }

// mostUnsettled is the maximum number of unsettled writes that are remembered per key. Each comes
// from an exchange that ended while a write was in doubt, or whose asks the policy has answered.
const mostUnsettled = 16

const (
	// quiet is the time without a write by another server after which this server writes a key
	// without reading it first.
	quiet = 100 * time.Millisecond
	// longestGap is the longest time that a server leaves to other servers after its write.
	longestGap = 5 * time.Millisecond
)

// shared reports whether other servers also write the key, as of the stopwatch reading elapsed.
func (m *memory) shared(elapsed time.Duration) bool {
	return m.others > 0 && elapsed-m.sharedAt < quiet
}

// idle reports whether nothing has to be remembered about the key.
func (m *memory) idle() bool {
	return m.value.raw == nil && m.denial == nil && len(m.unsettled) == 0 && m.back == nil && len(m.refunds) == 0
}

// observe stores v, the present value in the engine, as the remembered value, and settles the
// unsettled writes. If v is older than the remembered value, the engine has lost writes: observe
// then keeps the remembered value and returns true.
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

// countOthers sets others to the number of other servers that have written since the last read, if
// v shows any. v has at most the latest write of each of eight servers.
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

// wrote stores v, which this server has just written, as the remembered value, and settles the
// unsettled writes. rtt is the duration of the write. If other servers write the key, too, wrote
// sets the earliest time for the next exchange.
func (m *memory) wrote(c *core, v *value, rtt time.Duration) {
	if m.back != nil {
		m.giveBack(c, m.back, v)
		m.back = nil
	}
	m.known, m.value, m.denial = true, *v, nil
	// A write that was in doubt before was not done, because it would have changed the value that
	// this write has replaced.
	for _, d := range m.unsettled {
		m.refunds = append(m.refunds, d.again...)
	}
	clear(m.unsettled)
	m.unsettled = m.unsettled[:0]
	if elapsed := c.timing.Elapsed(); m.shared(elapsed) {
		m.notBefore = elapsed + min(rtt*time.Duration(m.others+1)/2, longestGap)
	}
}

// noteUnsettled remembers the unsettled write d, unless no charge depends on d. If mostUnsettled
// writes are remembered already, the oldest one is forgotten, and its asks are counted as unknown.
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

// refundsDue reports whether a charge has to be given back as soon as possible, even if no asks
// wait.
func (m *memory) refundsDue() bool {
	for _, d := range m.unsettled {
		if d.sure {
			return true
		}
	}
	return m.back != nil || len(m.refunds) > 0
}

// settle determines from v, the present value in the engine, which unsettled writes were done,
// and prepares refunds of their charges. Writes whose outcome is still open remain unsettled.
func (m *memory) settle(c *core, v *value) {
	if m.back != nil {
		m.unsettled, m.back = append(m.unsettled, m.back), nil
	}
	open := m.unsettled[:0]
	for _, d := range m.unsettled {
		switch outcomeOf(d.tag, &d.old, v) {
		case undecided:
			if d.sure { // the engine has lost the write since then, together with its charges
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

// outcome is the outcome of a write, as far as it is known.
type outcome uint8

const (
	undecided outcome = iota // undecided means that the write may still be done.
	done
	notWritten // notWritten means that the write was not done and never will be.
	lost       // lost means that the outcome cannot be found out.
)

// outcomeOf determines from v, the present value in the engine, the outcome of this server's
// write t, which was to replace the value old. t is 0 if the write was to delete the key.
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
		return notWritten // the latest write of this server that v has is an earlier one
	case t == 0 || v.full():
		return lost
	}
	return notWritten
}

// giveBack adds a refund to m.refunds for each ask in d.items whose charge still exists according
// to v. The other asks are counted as kept.
func (m *memory) giveBack(c *core, d *unsettledWrite, v *value) {
	for _, it := range d.items {
		if a := refund(it.ask, v, c.timing.Now(), v.tag == d.tag); a != nil {
			m.refunds = append(m.refunds, &item{ask: a, place: it.place})
			continue
		}
		c.count.kept.Add(1)
	}
}
