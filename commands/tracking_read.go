package commands

import "bytes"

// reading is the read of a tracking client that a lane runs.
type reading struct {
	runs  bool
	args  [][]byte
	fresh []int // the arguments that are keys for which the client was not registered
}

// justRead reports whether key was registered for the read that runs and not before.
func (r *reading) justRead(key []byte) bool {
	if !r.runs {
		return false
	}
	for _, i := range r.fresh {
		if bytes.Equal(r.args[i], key) {
			return true
		}
	}
	return false
}

// runTracked runs the command of a client that tracks. It registers the client for the
// keys of a read before that looks at them, so that no change in between is missed. A
// change between the two takes the registration away and is told behind the reply; a
// client that has not kept the value by then would keep it for ever, so it is
// registered once more.
func runTracked(c *Ctx) {
	t, cmd := c.S.tracks.Load(), c.Cmd
	if t == nil || !c.remembers(t) {
		cmd.Run(c)
	} else {
		table, id, keys, args := &c.engine.invalidator.reads, c.S.id, &cmd.Keys, c.Args
		r := &c.reading
		r.runs, r.args, r.fresh = true, args, r.fresh[:0]
		defer func() { *r = reading{fresh: r.fresh} }()
		removed := table.removed.Load()
		keys.each(args, func(i int) {
			if c.engine.remember(args[i], id) {
				r.fresh = append(r.fresh, i)
			}
		})
		if len(r.fresh) > 0 {
			removed += c.boundReads()
		}
		cmd.Run(c)
		if table.removed.Load() != removed {
			keys.each(args, func(i int) { c.engine.remember(args[i], id) })
		}
	}
	if !c.shutOut {
		c.S.endCaching(cmd)
	}
}

// remembers reports whether the keys of the running command are to be registered: of
// any that only reads, also for a script, but not of the script as a whole.
func (c *Ctx) remembers(t *tracking) bool {
	switch {
	case c.Cmd.Flags&FlagReadonly == 0, c.Cmd.runsScript(), t.broadcast:
		return false
	case t.optIn:
		return c.S.caching
	case t.optOut:
		return !c.S.caching
	}
	return true
}

// endCaching ends what CLIENT CACHING said behind the command that it was for: the next
// one that is no CLIENT, or the whole transaction.
func (s *Session) endCaching(cmd *Command) {
	if s.caching && !s.exclusive && (s.tx == nil || !s.tx.active) && (cmd == nil || cmd.Group != "connection" || cmd.parent == nil) {
		s.caching = false
	}
}

// remember registers a client for key and reports whether it was not.
func (e *Engine) remember(key []byte, id int64) (fresh bool) {
	return e.invalidator.reads.add(key, id)
}

// mostEvicted is how many entries leave the table for one read: enough to get within a
// bound that was lowered, and little enough for others not to notice.
const mostEvicted = 64

// boundReads keeps the table within tracking-table-max-keys after the read that runs has
// added to it, and returns how many entries it has removed. While memory is full the table
// shrinks: for each new key two others go. Who had read a key that goes is told to forget
// it.
func (c *Ctx) boundReads() (removed uint64) {
	t, most := &c.engine.invalidator.reads, c.engine.Limits().TrackingKeys
	forced := uint64(0)
	if c.Store.Full() {
		forced = 2 * uint64(len(c.reading.fresh))
	}
	just := func(key string) bool { return c.reading.justRead([]byte(key)) }
	for removed < max(mostEvicted, forced) && (removed < forced || most > 0 && t.keys.Load() > most) {
		r := t.draw(just)
		if r == nil {
			break
		}
		removed++
		c.work += c.engine.tell([]change{{who: r}}) * tellWork
	}
	return removed
}

// readBeside returns what a read that runs beside the loops has to do right before and
// right after it looks: it registers the client once more, as runTracked does.
func (c *Ctx) readBeside() func() {
	t := c.S.tracks.Load()
	if t == nil || !c.reading.runs {
		return nil
	}
	var keys [][]byte
	c.Cmd.Keys.each(c.Args, func(i int) { keys = append(keys, bytes.Clone(c.Args[i])) })
	e, id := c.engine, c.S.id
	return func() {
		for _, key := range keys {
			e.remember(key, id)
		}
	}
}

// each calls f with the indices of args that hold keys.
func (k *KeySpec) each(args [][]byte, f func(i int)) {
	if k.Find == nil && k.First > 0 && k.First == k.Last {
		if k.First < len(args) {
			f(k.First) // as positions, which makes a list
		}
		return
	}
	for _, i := range k.positions(args) {
		f(i)
	}
}
