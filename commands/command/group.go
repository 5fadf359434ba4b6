package command

import "github.com/cellserver/cellserver/limit"

// Group is a part of the commands, and what it has of its own in the sessions' workers.
type Group struct {
	Commands []*Command
	// Worker makes what the group keeps for a new worker, which is used by one goroutine at
	// a time; nil if that is nothing. Its commands find it by [Scratch].
	Worker func() any
	Hooks  Hooks
}

// Hooks are where a group takes part in what is no command of it. Each gets what the group
// keeps for a worker; nil is for a group that takes no part.
type Hooks struct {
	// BatchEnd is called behind a batch of commands, before its input goes.
	BatchEnd func(kept any, now limit.Instant)
	// Refused tells that a command which waited for room under a key got none.
	Refused func(kept any, db int, key []byte, now limit.Instant)
	// Decay is called once a minute, ResetStats by CONFIG RESETSTAT, for every worker; each
	// by any goroutine.
	Decay, ResetStats func(kept any)
}

// maxGroups is how many groups there may be.
const maxGroups = 24

// Scratch is what the group of the running command keeps for the worker.
func Scratch[T any](c *Call) *T { return c.kept[c.Cmd.group].(*T) }

// ScratchOf is what the group of the running command keeps for another worker.
func ScratchOf[T any](c *Call, w *Worker) *T { return w.kept[c.Cmd.group].(*T) }

// Equip gives a new worker what the groups keep for it.
func (t *Table) Equip(w *Worker) {
	for i := range t.groups {
		if make := t.groups[i].Worker; make != nil {
			w.kept[i] = make()
		}
	}
}

// BatchEnd tells the groups that a batch of commands has run.
func (t *Table) BatchEnd(w *Worker) {
	for _, i := range t.batchEnd {
		t.groups[i].Hooks.BatchEnd(w.kept[i], w.Store.Now())
	}
}

// Refused tells the groups of a wait for room that ended without any.
func (t *Table) Refused(w *Worker, db int, key []byte, now limit.Instant) {
	for i := range t.groups {
		if f := t.groups[i].Hooks.Refused; f != nil {
			f(w.kept[i], db, key, now)
		}
	}
}

// Decay is for once a minute, ResetStats for CONFIG RESETSTAT.
func (t *Table) Decay(w *Worker) {
	for i := range t.groups {
		if f := t.groups[i].Hooks.Decay; f != nil {
			f(w.kept[i])
		}
	}
}

// ResetStats has the groups forget what they have counted.
func (t *Table) ResetStats(w *Worker) {
	for i := range t.groups {
		if f := t.groups[i].Hooks.ResetStats; f != nil {
			f(w.kept[i])
		}
	}
}
