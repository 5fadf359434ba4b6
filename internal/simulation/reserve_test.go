package simulation_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hold is a reservation of a client.
type hold struct {
	p    *part
	id   string
	in   input
	ends bool // its time may pass within the history
}

// beyond is how much more than its limit a limiter may have in use: RL.COMMIT charges whatever it says.
const beyond = 1000

// limiter returns the call of a limiter with reservations that takes n units of a limit. What a bucket refills
// in a history does not matter: a token is worth 30 days. Half of the parts have two keys, which every call
// charges alike, and which the first one settles.
func (p *part) limiter(limit, n int64) []string {
	most, quantity := strconv.FormatInt(limit, 10), strconv.FormatInt(n, 10)
	modes := [][]string{{years, "FIXED"}, {years, "LOG"}, {years, "BUCKETS", "8"}, {years, "COUNTER"}, {"YEAR", "ZONE", "Asia/Tokyo", "FROM", "11-01"}}
	name, words := "TB.ACQUIRE", []string{most, "1", "2592000", quantity}
	if mode := p.how % (len(modes) + 1); mode < len(modes) {
		name, words = "SW.ALLOW", append([]string{most, modes[mode][0], quantity}, modes[mode][1:]...)
	}
	if p.how/(len(modes)+1)%2 == 0 {
		return append([]string{name, p.keys[0]}, words...)
	}
	clause := append([]string{name[:2]}, words...)
	return slices.Concat([]string{"RL.MULTI", "2", p.keys[0], p.keys[0] + ":other"}, clause, clause)
}

// drawReserve returns a random call of a limiter with reservations: one without RESERVE, one with it, or one that
// settles a reservation of the client, which it may have settled before. in is a call that takes some units.
func (c *client) drawReserve(p *part, in input) (_ input, commands [][]string) {
	in.kind = kindTake
	at := slices.IndexFunc(c.held, func(h *hold) bool { return h.p == p })
	switch {
	case at >= 0 && c.rng.IntN(3) > 0:
		h := c.held[at]
		in.hold, in.units, in.kind, in.n = h.in.hold, h.in.units, kindCancel, 0
		words := []string{"RL.CANCEL", p.keys[0], h.id}
		if c.rng.IntN(4) > 0 {
			in.kind, in.n = kindCommit, c.rng.Int64N(h.in.units+3)
			words = []string{"RL.COMMIT", p.keys[0], h.id, strconv.FormatInt(in.n, 10)}
		}
		return in, [][]string{words}
	case c.rng.IntN(3) == 0:
		return in, [][]string{p.limiter(p.limit, in.n)}
	}
	c.tags++
	h := &hold{p: p, id: fmt.Sprintf("%d-%d", c.id, c.tags), ends: c.rng.IntN(5) == 0}
	in.kind, in.n, in.hold = kindReserve, 1+c.rng.Int64N(6), p.reserve()
	in.units, h.in = in.n, in
	h.in.units = in.n
	c.held = append(c.held, h)
	ttl := "86400"
	if h.ends {
		ttl = strconv.Itoa(shortTTL)
	}
	return in, [][]string{append(p.limiter(p.limit, in.n), "RESERVE", h.id, ttl)}
}

// shortTTL is the time in seconds of a reservation that may pass within a history.
const shortTTL = 2

// follow updates the reservation of a call that was sent at an instant and at a number of the order, and had no
// effect if none.
func (c *client) follow(p *part, in input, out output, none bool, began time.Time, call int64) {
	at := slices.IndexFunc(c.held, func(h *hold) bool { return h.p == p && h.in.hold == in.hold })
	h := c.held[at]
	gone := false
	switch {
	case in.kind == kindReserve:
		if gone = none || out.denied && !in.again; !gone && h.ends {
			late := time.Since(began) // the last attempt may have been the first to arrive
			if !out.known {
				late += 10 * time.Second // or one may still arrive
			}
			p.lapses(in, began.Add(shortTTL*time.Second), late, call)
		}
	case out.known && !out.denied:
		gone = c.rng.IntN(3) > 0 // or it is settled once more
	case out.denied:
		gone = c.rng.IntN(3) == 0
	}
	if gone {
		c.held = slices.Delete(c.held, at, at+1)
	}
}

// ended reports whether the reply to a call says that its reservation has ended, and whether it may have: the call
// was sent again, after some time.
func (c *client) ended(in input, reply string) bool {
	if in.kind != kindReserve || !in.again || !strings.HasPrefix(reply, "-IDENDED") {
		return false
	}
	return slices.ContainsFunc(c.held, func(h *hold) bool { return h.in.hold == in.hold && h.ends })
}

// wrong returns how far the clocks of servers may be from the right one.
func (s *Sim) wrong() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead
}

// lapse waits until all reservations of parts whose time is short have ended, and makes the primary write it down,
// which only the next call of a key does.
func (s *Sim) lapse(all []*part) {
	last := time.Duration(0)
	for _, p := range all {
		p.mu.Lock()
		for _, l := range p.short {
			last = max(last, time.Until(l.due)+l.late+s.wrong()+2*time.Second)
		}
		p.mu.Unlock()
	}
	s.w.Advance(last)
	for _, p := range all {
		if p.topic == topicReserve {
			p.pass(&s.order, s.wrong)
			s.do(s.leader(), p.limiter(p.limit, beyond+1)...)
		}
	}
	s.do(s.leader(), "SET", "flushed", "yes") // the reply to a denied call waits for nothing
	s.w.Advance(1200 * time.Millisecond)
}
