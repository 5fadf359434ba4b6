package tracking

import (
	"bytes"

	"github.com/cellserver/cellserver/command"
)

// remembers reports whether the keys of the running command are to be registered for a client with
// the tracking options t. The keys of a command that only reads are, even if a script calls the
// command. The keys of the script itself are not.
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

// endCaching ends the effect of CLIENT CACHING after cmd, the command that it applied to: that is
// the next command which is not a subcommand of CLIENT, or a whole transaction. cmd is nil if the
// command does not exist.
func (v *invalidator) endCaching(cl *command.Client, cmd *command.Command) {
	if cl.Marks&command.MarkQueuing == 0 && !cl.Exclusive && (cmd == nil || cmd.Group != "connection" || cmd.Parent == nil) {
		cl.Mark(command.MarkCaching, false)
	}
}

// mostEvicted is the maximum number of entries that a read of few keys evicts. It is large enough
// that a table whose maximum was lowered shrinks after some reads, and small enough not to delay
// other clients. A read of many keys evicts up to twice as many entries as it has added.
const mostEvicted = 64

// boundReads evicts entries to keep the table within tracking-table-max-keys after the running read
// r has added to it, and returns the number of evicted entries. While memory is full it evicts two
// entries for each new one, so that the table shrinks. Clients that had read an evicted key get an
// invalidation.
func (v *invalidator) boundReads(c *command.Call, r *reading) (removed uint64) {
	t, most := &v.reads, c.Server.Limits().TrackingKeys
	twice, forced, spare := 2*uint64(r.fresh), uint64(0), r.number
	if c.Full() {
		forced = twice
	}
	for removed < max(mostEvicted, twice) && (removed < forced || t.beyond(most)) {
		r := t.draw(spare)
		if r == nil {
			if spare == 0 {
				break
			}
			spare = 0 // no entries, or almost none, are left but those of this read
			continue
		}
		removed++
		c.Work += v.notify([]change{{readers: r}}) * tellWork
	}
	return removed
}

// readsElsewhere returns a function that registers the client for the keys of the running command
// again, or nil if the command is no tracked read. A read on another goroutine has to call the
// function right before and right after it looks at the keys; run explains why.
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

// run runs the command of c for a tracking client. It registers the client for the keys of a read
// before the command looks at them, so that no change is missed. If a key changes between the
// registration and the look, the registration is removed, and the invalidation is sent after the
// reply. A client that ignores an invalidation of a value which it has not cached yet would then
// keep the reply forever. So run registers the client again if any entry was removed meanwhile.
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
