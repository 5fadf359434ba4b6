package tracking

import (
	"bytes"

	"github.com/cellserver/cellserver/commands/command"
)

// remembers reports whether the keys of the running command are to be registered. They are if the
// command only reads, also when a script calls it; the script itself is not registered.
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

// endCaching resets the flag of CLIENT CACHING after the command that it applied to: the next
// command that is not a CLIENT subcommand, or the whole transaction.
func (v *invalidator) endCaching(cl *command.Client, cmd *command.Command) {
	if cl.Marks&command.MarkQueuing == 0 && !cl.Exclusive && (cmd == nil || cmd.Group != "connection" || cmd.Parent == nil) {
		cl.Mark(command.MarkCaching, false)
	}
}

// mostEvicted is the largest number of entries that a read of few keys evicts: enough to get
// within a lowered bound after some reads, and few enough not to delay other clients. A read of
// many keys evicts up to twice as many entries as it has added.
const mostEvicted = 64

// boundReads keeps the table within tracking-table-max-keys after the running read has added to
// it, and returns the number of evicted entries. While memory is full it evicts two entries for
// each new one, so that the table shrinks. Clients that had read an evicted key get an
// invalidation.
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
			spare = 0 // only entries of this read are left, or almost only
			continue
		}
		removed++
		c.Work += v.notify([]change{{who: r}}) * tellWork
	}
	return removed
}

// readsElsewhere returns a function for a read that runs on another goroutine, which has to call
// it right before and right after it looks at the keys. The function registers the client again,
// for the reason that run has.
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

// run runs a command of a tracking client. It registers the client for the keys of a read before
// the command looks at them, so that no change is missed. A change between the registration and
// the look removes the registration, and its invalidation leaves after the reply. Clients that
// ignore an invalidation for a value which they have not cached yet would then keep the reply
// forever, so run registers the client again.
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
