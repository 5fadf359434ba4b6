package limiters

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
	"github.com/cellserver/cellserver/stats"
)

// scratch has the state of the limiters in a worker: its decider, and the memory for the arguments
// of RL.MULTI, RL.USE and the commands that settle reservations.
type scratch struct {
	decider    *ratelimit.Decider
	recorder   *hotkeys.Recorder // the recorder of the decider
	multi      multiArgs
	quantities quantities
	own        ownLimits
	several    *severalCall // the call of RL.USE under several policies; nil until there is one
	caller     policyCaller // memory for a call of RL.USE that a Remote decides
	settled    settledClauses
}

// severalCall returns the memory for a call of RL.USE that names several policies.
func (s *scratch) severalCall() *severalCall {
	if s.several == nil {
		s.several = new(severalCall)
	}
	return s.several
}

// newService returns the service that all deciders of the server s share. slot is the slot of this
// command group.
func newService(s *command.Server, slot command.Slot) *ratelimit.Service {
	each := func(f func(r *hotkeys.Recorder)) limit.Instant {
		return s.Host.Measures.EachWorker(func(w *command.Worker) { f(slot.OfWorker(w).(*scratch).recorder) })
	}
	warn := func(calls int64) {
		s.Log.Warn("two limits share a key and count each other's calls, see RL.TOP CALLS WITHDETAILS", "calls", calls)
	}
	service := &ratelimit.Service{
		Bounds: func() policy.Bounds {
			l := s.Limits()
			return policy.Bounds{LogMaxEntries: l.LogMaxEntries, MaxMembers: l.MaxMembers}
		},
		Keys: hotkeys.New(s.Options.Groups, each, warn),
	}
	if r := s.Options.Policies; r != nil {
		service.Policies, service.Notices = r, newNotices(s)
		service.Unread, service.Unreadable = s.Options.PoliciesUnread, s.Options.PolicyUnreadable
	}
	return service
}

// hooks returns the hooks that maintain the statistics of keys. slot is the slot of this command
// group.
func hooks(slot command.Slot, keys *hotkeys.Keys) command.Hooks {
	of := func(w *command.Worker) *scratch { return slot.OfWorker(w).(*scratch) }
	return command.Hooks{
		BatchEnd: func(w *command.Worker) {
			s := of(w)
			s.decider.EndBatch(w.Store.Now())
			s.multi.trim()
			s.settled.trim()
		},
		Limited: func(c *command.Call, a *decide.Ask) {
			of(c.Worker).recorder.Note(caller{c}, a, a.Key, &a.Decision)
		},
		Decided: func(w *command.Worker, db int, d *command.Decided, now limit.Instant) {
			of(w).recorder.NoteWaited(db, d.Key, &d.Decision, now)
			if d.Counter != nil {
				d.Counter.Answered(d.Decision.Refused != 0)
			}
		},
		Decay: func(w *command.Worker) { of(w).recorder.Decay() },
		ResetStats: func(w *command.Worker) {
			of(w).recorder.Reset()
			keys.ResetMixed()
			keys.ResetIDs()
			keys.ResetReservations()
		},
	}
}

// seen implements [command.Seen] with the statistics of keys.
type seen struct {
	keys *hotkeys.Keys
	slot command.Slot
}

// TakeGroups implements [command.Seen]. It returns what was recorded about groups of keys since its
// last call.
func (s seen) TakeGroups() []stats.SeenGroup { return s.keys.TakeGroups() }

// Denied implements [command.Seen]. It returns the keys with the most denied calls as of the
// instant now.
func (s seen) Denied(now limit.Instant) stats.SeenKeys { return s.keys.Seen(hotkeys.Denied, now) }

// Called implements [command.Seen]. It returns the keys with the most calls as of the instant now.
func (s seen) Called(now limit.Instant) stats.SeenKeys { return s.keys.Seen(hotkeys.Calls, now) }

// AppendSummary appends the summary of the most frequent keys: see [command.Seen].
func (s seen) AppendSummary(dst []byte, now limit.Instant) []byte {
	summary := s.keys.Summary(now)
	return summary.Append(dst)
}

// Groups implements [command.Seen]. It returns the number of decisions by group of keys.
func (s seen) Groups() []stats.GroupCount { return s.keys.Groups().Snapshot() }

// LackedMemory implements [command.Seen]. It records that a call about key by w was refused for
// lack of memory. Only the goroutine of w may call it.
func (s seen) LackedMemory(w *command.Worker, key []byte) {
	s.slot.OfWorker(w).(*scratch).recorder.LackedMemory(key)
}
