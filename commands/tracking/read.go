package tracking

import (
	"bytes"

	"github.com/cellserver/cellserver/command"
)

// remembers reports whether the client, which has the tracking options t, is registered for the
// keys of the running command. Only read-only commands register the client, also if a script calls
// them. A command that runs a script registers no keys of its own. With BCAST no command registers
// the client. With OPTIN or OPTOUT it depends on the latest CLIENT CACHING.
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

// endCaching ends the effect of CLIENT CACHING after the command cmd, unless cmd is a subcommand of
// CLIENT or the client's transaction has not ended. So CLIENT CACHING applies to the next other
// command, or to a whole transaction. cmd is nil if the command does not exist.
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
// r has added entries, and returns the number of evicted entries. While memory is full it evicts
// two entries for each new one, so that the table shrinks. It sends an invalidation to the clients
// that had read an evicted key.
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
			spare = 0 // almost all entries that are left belong to the present read
			continue
		}
		removed++
		c.Work += v.notify([]change{{readers: r}}) * tellWork
	}
	return removed
}

// readsElsewhere is the ReadsElsewhere hook. It returns a function that registers the client again
// for the keys of the running command, or nil if no tracked read runs. A command that reads on
// another goroutine has to call the function right before and right after it looks at the keys; the
// comment of run explains why.
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

// run is the Run hook: it runs the command of c, which a tracking client has called. Before a read
// looks at its keys, run registers the client for them, so that no change is missed. If a key
// changes between the registration and the look, the change removes the registration, and the
// invalidation is sent after the reply. A client that ignores an invalidation of a value which it
// has not cached yet would then keep the reply forever. So run registers the client again if any
// entry was removed meanwhile.
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
