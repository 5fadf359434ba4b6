package tracking

import (
	"bytes"

	"github.com/cellserver/cellserver/commands/command"
)

// remembers reports whether the keys of the running command are to be registered: of
// any that only reads, also for a script, but not of the script as a whole.
func remembers(c *command.Call, t *tracking) bool {
	switch {
	case c.Cmd.Flags&command.FlagReadonly == 0, c.Cmd.RunsScript(), t.broadcast:
		return false
	case t.optIn:
		return c.Client.Marks&command.MarkCaching != 0
	case t.optOut:
		return c.Client.Marks&command.MarkCaching == 0
	}
	return true
}

// endCaching ends what CLIENT CACHING said behind the command that it was for: the next
// one that is no CLIENT, or the whole transaction.
func (v *invalidator) endCaching(cl *command.Client, cmd *command.Command) {
	if cl.Marks&command.MarkQueuing == 0 && !cl.Exclusive && (cmd == nil || cmd.Group != "connection" || cmd.Parent == nil) {
		cl.Mark(command.MarkCaching, false)
	}
}

// mostEvicted is how many entries leave the table for a read of few keys: enough to get
// within a bound that was lowered, and little enough for others not to notice. For a read
// of many it is twice as many as it has added.
const mostEvicted = 64

// boundReads keeps the table within tracking-table-max-keys after the read that runs has
// added to it, and returns how many entries it has removed. While memory is full the table
// shrinks: for each new key two others go. Who had read a key that goes is told to forget
// it.
func (v *invalidator) boundReads(c *command.Call, r *reading) (removed uint64) {
	t, most := &v.reads, c.Server.Limits().TrackingKeys
	twice, forced, spare := 2*uint64(r.fresh), uint64(0), r.number
	if c.Store.Full() {
		forced = twice
	}
	for removed < max(mostEvicted, twice) && (removed < forced || t.beyond(most)) {
		r := t.draw(spare)
		if r == nil {
			if spare == 0 {
				break
			}
			spare = 0 // the rest is of this read, or nearly so
			continue
		}
		removed++
		c.Work += v.tell([]change{{who: r}}) * tellWork
	}
	return removed
}

// readsElsewhere returns what a read that runs on another goroutine has to do right before
// and right after it looks: it registers the client once more, as run does.
func (v *invalidator) readsElsewhere(c *command.Call) func() {
	table, id, number := &v.reads, c.Client.ID, v.reading(c.Worker).number
	if number == 0 || v.tracking(c.Client) == nil {
		return nil
	}
	var keys [][]byte
	c.Cmd.Keys.Each(c.Args, func(i int) { keys = append(keys, bytes.Clone(c.Args[i])) })
	return func() {
		for _, key := range keys {
			table.add(key, id, number)
		}
	}
}

// run runs the command of a client that tracks. It registers the client for the keys of a
// read before that looks at them, so that no change in between is missed. A change between
// the two takes the registration away and is told behind the reply; a client that has not
// kept the value by then would keep it for ever, so it is registered once more.
func (v *invalidator) run(c *command.Call) {
	t, cmd := v.tracking(c.Client), c.Cmd
	if t == nil || !remembers(c, t) {
		cmd.Run(c)
	} else {
		table, id, keys, args := &v.reads, c.Client.ID, &cmd.Keys, c.Args
		r := v.reading(c.Worker)
		*r = reading{number: table.read.Add(1)}
		defer func() { *r = reading{} }()
		removed := table.removed.Load()
		keys.Each(args, func(i int) {
			if table.add(args[i], id, r.number) {
				r.fresh++
			}
		})
		if r.fresh > 0 {
			removed += v.boundReads(c, r)
		}
		cmd.Run(c)
		if table.removed.Load() != removed {
			keys.Each(args, func(i int) { table.add(args[i], id, r.number) })
		}
	}
	if !c.WorldBusy {
		v.endCaching(c.Client, cmd)
	}
}
