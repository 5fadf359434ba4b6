package keyspace

import (
	"errors"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
)

// Decide decides the ask a at the handle's instant, stores and records the effect, and fills in the
// answer. a.Err is one of the errors of [decide.Plan.One] or [decide.Rounds.End]; limit.ErrFull, if
// memory is full and the key is new or would remember one more call, or the table has no room; or
// limit.ErrNotKept, if the journal refuses effects, which is not checked for the families Cancel
// and Admin. With an error nothing is stored, unless a table had no room for a key of an RL.MULTI
// after other keys had been stored. Each ask of a Joint is decided by itself: the parts of its state have keys of their
// own here, and the key of the Joint is not used.
func (v *Handle) Decide(a *decide.Ask) {
	switch a.Family {
	case decide.Several:
		a.Err = v.decideSeveral(a)
		return
	case decide.SettleSeveral:
		a.Err = v.settleSeveral(a)
		return
	case decide.Settle:
		for a.Err = v.settle(a); a.Err == nil && a.Linked; a.Err = v.settle(a) {
			if a.Err = v.settleSeveral(a); a.Err != nil || a.Linked {
				return
			}
		}
		return
	case decide.Admin:
		a.Err = v.administer(a)
		return
	case decide.Joint:
		a.Now = v.now
		a.Err = a.Program.Run(v.Decide)
		return
	}
	h := v.hash(a.Key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, a.DB, h, a.Key)
	plan := &v.plan.Plan
	if a.Err = plan.One(&p.e, v.now, a); a.Err == nil && plan.Action != decide.Keep {
		switch {
		case a.Family != decide.Cancel && v.refuses():
			a.Err = limit.ErrNotKept
		case plan.Grows() && v.full():
			a.Err = limit.ErrFull
		default:
			a.Err = v.apply(s, &p, a.Key, plan)
		}
	}
	remembers := p.e.Kind.Remembers()
	if remembers && (a.Err == nil && a.Repeats() || errors.Is(a.Err, reservation.ErrEnded)) {
		// The answer reports the effect of an earlier call, which may not be persisted yet.
		if err := v.confirm(s, &p, a.Key); err != nil {
			a.Err = err
		}
	}
	if remembers || a.Family == decide.Lease {
		plan.Forget()
	}
}

// confirm records the state of key, whose place is p and which remembers a call that was repeated,
// without a change. The reply to the repetition says that the call was charged, so it has to wait
// until the journal and the replicas have the charge, as the reply to the call did. The error is
// limit.ErrNotKept, if the journal refuses effects.
func (v *Handle) confirm(s *shard, p *place, key []byte) error {
	switch {
	case v.refuses():
		return limit.ErrNotKept
	case s.recorder != nil && s.recorder.Empty(): // the effects of a script are recorded together, after the charge
		s.recorder.Patch(p.db, key, p.e.Kind, p.e.Expiry, nil)
	}
	return nil
}
