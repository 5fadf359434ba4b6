package remote

import "time"

// sending is a write of a group that is in progress, with all its tries.
type sending struct {
	parts []int
	sent  time.Duration
	tries int
	doubt bool // whether a try has ended without a reply
	then  func(outcome)
}

// mostTries is the maximum number of times that a write of a group is sent if no reply arrives. The
// pauses between the tries add up to about two seconds. Other asks about the keys of the group wait
// meanwhile.
const mostTries = 64

// send writes the prepared values of parts, all or none. At the end it calls the function then,
// with the lock. The outcome is done, notWritten, lost, or undecided, which means that the write
// was given up and was not done. The lock must be held.
func (g *group) send(parts []int, then func(outcome)) {
	g.try(&sending{parts: parts, sent: g.timing.Elapsed(), then: then})
}

// try sends the write of s once. The lock must be held.
func (g *group) try(s *sending) {
	g.count.swaps.Add(1)
	ws := make([]Write, len(s.parts))
	for i, n := range s.parts {
		ws[i] = g.parts[n].write
	}
	g.later(func() {
		if len(ws) == 1 {
			g.engine.Swap(ws[0], func(applied bool, now []byte, err error) {
				g.locked(func() { g.tried(s, applied, [][]byte{now}, err) })
			})
			return
		}
		g.engine.SwapAll(ws, func(applied bool, now [][]byte, err error) {
			g.locked(func() { g.tried(s, applied, now, err) })
		})
	})
}

// tried continues after a try of s, which has returned applied and now, or err. It records a write
// and passes the outcome to s.then, or continues with failed or conflict. The lock of the group is
// held.
func (g *group) tried(s *sending, applied bool, now [][]byte, err error) {
	switch {
	case isForeign(err):
		for _, i := range s.parts {
			if g.parts[i].stale = true; len(s.parts) == 1 {
				g.foreign(&g.parts[i])
			}
		}
		s.then(notWritten)
	case err != nil:
		g.failed(s, err)
	case applied:
		g.count.applied.Add(1)
		rtt := g.timing.Elapsed() - s.sent
		for _, i := range s.parts {
			p := &g.parts[i]
			p.applied, p.seen, p.v = true, p.put.raw, p.put
			p.key.shard.mu.Lock()
			p.key.memory.wrote(&g.core, &p.put, rtt)
			p.key.noteGone(&p.put)
			p.key.shard.mu.Unlock()
		}
		s.then(done)
	default:
		g.conflict(s, now)
	}
}

// failed continues after a try of s has failed with err. It tries again after a pause, or gives up
// and calls s.then with undecided or lost. If the engine has certainly done nothing, the policy
// answers the asks, unless the group is giving back charges or a slot is being moved.
func (g *group) failed(s *sending, err error) {
	if !notDone(err) {
		s.doubt = true
		g.count.doubts.Add(1)
	} else if !s.doubt && reasonOf(err) != moved && !g.undoing() {
		g.giveUp(reasonOf(err))
	}
	s.tries++
	switch {
	case !s.doubt && g.over() && !g.undoing(), s.tries == mostTries && !s.doubt:
		s.then(undecided)
	case s.tries == mostTries:
		g.count.unknown.Add(1)
		s.then(lost)
	default:
		g.again(s.tries, func() { g.try(s) })
	}
}

// moved is the reason that the engine gives for a write of several keys while their slot moves to
// another node.
const moved reason = "TRYAGAIN"

// undoing reports whether the group is giving back charges.
func (g *group) undoing() bool { return g.undoes > 0 }

// conflict determines, from the present values in the engine, whether an earlier try of s was
// done. It stores these values in the parts.
func (g *group) conflict(s *sending, now [][]byte) {
	became := g.became(s, now)
	for n, i := range s.parts {
		g.saw(&g.parts[i], now[n])
		g.parts[i].applied = became == done
	}
	switch became {
	case done:
		g.count.found.Add(1)
	case lost:
		g.count.unknown.Add(1)
	default:
		g.count.conflicts.Add(1)
	}
	s.then(became)
}

// became returns the outcome of the write of s, which is all or none, from the present values in
// the engine. If one key has its new value, all keys had it. If one key certainly did not get its
// new value, none did. An absent key proves nothing by itself, since other servers also delete
// keys.
func (g *group) became(s *sending, now [][]byte) outcome {
	var seen [lost + 1]bool
	gone := false
	for n, i := range s.parts {
		p := &g.parts[i]
		v, err := decode(now[n])
		if err != nil {
			seen[lost] = true
			continue
		}
		became := outcomeOf(p.tag, &p.old, &v)
		if p.tag == 0 && became == done {
			gone = true
			continue
		}
		seen[became] = true
	}
	switch {
	case seen[done]:
		return done
	case seen[undecided], seen[notWritten], !s.doubt:
		return notWritten
	case gone && !seen[lost]:
		return done
	}
	return lost
}
