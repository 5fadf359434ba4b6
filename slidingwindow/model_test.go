package slidingwindow_test

import (
	"math/big"

	"github.com/cellserver/cellserver/slidingwindow"
)

// The models below define each mode as simply as possible and without bounds: instants and units
// are big integers, and nothing is packed or truncated. They have no formula for a retry or a
// reset. A test asks them for their counts at the promised instant and one nanosecond before it.

// model is one limiter. Its instants must not decrease.
type model interface {
	// used returns the estimate at an instant if nothing happens until then.
	used(at *big.Int) *big.Int
	// slotUsed returns the count of the slot that contains the instant.
	slotUsed(at *big.Int) *big.Int
	// charged returns the count to which a penalty adds.
	charged(at *big.Int) *big.Int
	add(at, n *big.Int)
	refund(at, n *big.Int)
	// fits reports whether c has the same windows as the model.
	fits(at *big.Int, c *slidingwindow.Call) bool
}

var zero = new(big.Int)

func num(n int64) *big.Int         { return big.NewInt(n) }
func plus(a, b *big.Int) *big.Int  { return new(big.Int).Add(a, b) }
func minus(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
func times(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }

// floorDiv rounds towards minus infinity for a positive b.
func floorDiv(a, b *big.Int) *big.Int { return new(big.Int).Div(a, b) }

func smaller(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// newModel returns an unused limiter for c. With FIRST its windows begin at now.
func newModel(c *slidingwindow.Call, now *big.Int) model {
	anchor := num(int64(c.Phase))
	if c.First {
		anchor = now
	}
	w := num(int64(c.Window))
	counts := counts{}
	switch c.Mode {
	case slidingwindow.Calendar:
		return &calendarModel{rule: c.Calendar, byWindow: counts}
	case slidingwindow.Fixed:
		return &fixedModel{counterModel{anchor, w, counts}}
	case slidingwindow.Log:
		return &logModel{w: w, most: int(max(c.LogMaxEntries, 1))}
	case slidingwindow.Buckets:
		return &bucketsModel{anchor, w, num(int64(c.Slots)), counts}
	}
	return &counterModel{anchor, w, counts}
}

// sameAnchor reports whether windows of length w from both anchors coincide.
func sameAnchor(c *slidingwindow.Call, anchor, w *big.Int) bool {
	return c.First || new(big.Int).Mod(minus(anchor, num(int64(c.Phase))), w).Sign() == 0
}

// counts maps the number of a window or slot to its units.
type counts map[int64]*big.Int

func (c counts) get(i *big.Int) *big.Int {
	if n := c[i.Int64()]; n != nil {
		return n
	}
	return zero
}

// take subtracts up to n from number i and returns the rest of n.
func (c counts) take(i, n *big.Int) *big.Int {
	taken := smaller(c.get(i), n)
	c[i.Int64()] = minus(c.get(i), taken)
	return minus(n, taken)
}

// forget removes the counts before number i, only to save memory.
func (c counts) forget(i *big.Int) {
	for j := range c {
		if j < i.Int64() {
			delete(c, j)
		}
	}
}

// counterModel counts units by window and weights those of the previous window.
type counterModel struct {
	anchor, w *big.Int
	byWindow  counts
}

func (m *counterModel) window(at *big.Int) *big.Int { return floorDiv(minus(at, m.anchor), m.w) }

func (m *counterModel) used(at *big.Int) *big.Int {
	k := m.window(at)
	end := plus(m.anchor, times(plus(k, num(1)), m.w))
	overlap := minus(end, at)
	before := m.byWindow.get(minus(k, num(1)))
	return plus(floorDiv(times(before, overlap), m.w), m.byWindow.get(k))
}

func (m *counterModel) slotUsed(*big.Int) *big.Int { return zero }

func (m *counterModel) charged(at *big.Int) *big.Int { return m.byWindow.get(m.window(at)) }

func (m *counterModel) add(at, n *big.Int) {
	k := m.window(at)
	m.byWindow[k.Int64()] = plus(m.byWindow.get(k), n)
	m.byWindow.forget(minus(k, num(1)))
}

func (m *counterModel) refund(at, n *big.Int) {
	k := m.window(at)
	m.byWindow.take(minus(k, num(1)), m.byWindow.take(k, n))
}

func (m *counterModel) fits(_ *big.Int, c *slidingwindow.Call) bool {
	return c.Mode == slidingwindow.Counter && m.w.Cmp(num(int64(c.Window))) == 0 && sameAnchor(c, m.anchor, m.w)
}

// fixedModel is a counter that ignores the previous window.
type fixedModel struct{ counterModel }

func (m *fixedModel) used(at *big.Int) *big.Int { return m.charged(at) }

func (m *fixedModel) refund(at, n *big.Int) { m.byWindow.take(m.window(at), n) }

func (m *fixedModel) fits(at *big.Int, c *slidingwindow.Call) bool {
	same := c.Mode == slidingwindow.Fixed && m.w.Cmp(num(int64(c.Window))) == 0 && sameAnchor(c, m.anchor, m.w)
	// With FIRST the next window begins with its first hit.
	return same && (!c.First || m.charged(at).Sign() > 0)
}

// logModel keeps every event.
type logModel struct {
	w      *big.Int
	most   int
	events []event
}

type event struct{ at, n *big.Int }

func (m *logModel) live(at *big.Int) []event {
	var live []event
	for _, e := range m.events {
		if plus(e.at, m.w).Cmp(at) > 0 {
			live = append(live, e)
		}
	}
	return live
}

func (m *logModel) used(at *big.Int) *big.Int {
	sum := new(big.Int)
	for _, e := range m.live(at) {
		sum.Add(sum, e.n)
	}
	return sum
}

func (m *logModel) slotUsed(*big.Int) *big.Int { return zero }

func (m *logModel) charged(at *big.Int) *big.Int { return m.used(at) }

func (m *logModel) add(at, n *big.Int) {
	m.events = m.live(at)
	if last := len(m.events) - 1; last >= 0 && (m.events[last].at.Cmp(at) == 0 || len(m.events) >= m.most) {
		m.events[last] = event{at, plus(m.events[last].n, n)}
		return
	}
	m.events = append(m.events, event{at, n})
}

func (m *logModel) refund(at, n *big.Int) {
	m.events = m.live(at)
	for i := len(m.events) - 1; i >= 0; i-- {
		taken := smaller(n, m.events[i].n)
		m.events[i].n = minus(m.events[i].n, taken)
		if n = minus(n, taken); m.events[i].n.Sign() == 0 {
			m.events = m.events[:i]
		}
	}
}

func (m *logModel) fits(_ *big.Int, c *slidingwindow.Call) bool {
	return c.Mode == slidingwindow.Log && m.w.Cmp(num(int64(c.Window))) == 0
}

// bucketsModel counts units by slot.
type bucketsModel struct {
	anchor, w, slots *big.Int
	bySlot           counts
}

func (m *bucketsModel) slot(at *big.Int) *big.Int {
	return floorDiv(times(minus(at, m.anchor), m.slots), m.w)
}

func (m *bucketsModel) used(at *big.Int) *big.Int {
	newest := m.slot(at)
	oldest := minus(newest, m.slots).Int64()
	sum := new(big.Int)
	for s, n := range m.bySlot {
		if s > oldest && s <= newest.Int64() {
			sum.Add(sum, n)
		}
	}
	return sum
}

func (m *bucketsModel) slotUsed(at *big.Int) *big.Int { return m.bySlot.get(m.slot(at)) }

func (m *bucketsModel) charged(at *big.Int) *big.Int { return m.used(at) }

func (m *bucketsModel) add(at, n *big.Int) {
	s := m.slot(at)
	m.bySlot[s.Int64()] = plus(m.bySlot.get(s), n)
	m.bySlot.forget(minus(s, m.slots))
}

func (m *bucketsModel) refund(at, n *big.Int) {
	s := m.slot(at)
	for i := int64(0); i < m.slots.Int64(); i++ {
		n = m.bySlot.take(minus(s, num(i)), n)
	}
}

func (m *bucketsModel) fits(_ *big.Int, c *slidingwindow.Call) bool {
	return c.Mode == slidingwindow.Buckets && m.slots.Cmp(num(int64(c.Slots))) == 0 &&
		m.w.Cmp(num(int64(c.Window))) == 0 && sameAnchor(c, m.anchor, m.w)
}
