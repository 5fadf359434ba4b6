package keyspace

import (
	"errors"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
)

// decideSeveral decides all clauses of the RL.MULTI a at one instant, and charges all of them or
// none: see [decide.Rounds]. It locks or claims all keys, and looks up each key just before its
// clause is decided. It returns the error of the decisions or of applyAll.
func (v *Handle) decideSeveral(a *decide.Ask) (err error) {
	all := &v.several
	all.ask = a
	defer func() {
		*all = several{}
		v.plan.Forget()
	}()
	var set shardSet
	all.spots, set = v.spread(len(a.Clauses), all.key)
	defer v.unlockHere(v.lockSpots(&set, all.spots, maxHeldClauses))

	plan := &v.plan
	for plan.Start(a, v.now); plan.Round(); {
		all.grows = false
		v.visit(a.DB, all.spots, all.key, func(i int, _ *shard, p *place) bool {
			goesOn := plan.Judge(i, &p.e)
			all.grows = all.grows || plan.Action == decide.Store && (p.old == entry.None || plan.Grows())
			return goesOn
		})
	}
	if err = plan.End(); err == nil && a.Repeats() || errors.Is(err, reservation.ErrEnded) {
		if failed := v.confirmAll(all); failed != nil {
			err = failed
		}
	}
	if err != nil || !plan.Changes {
		return err
	}
	return v.applyAll(all)
}

// confirmAll confirms the state of all keys of an ask that remember calls: see confirm.
func (v *Handle) confirmAll(all *several) (err error) {
	v.visit(all.ask.DB, all.spots, all.key, func(i int, s *shard, p *place) bool {
		if p.e.Kind.Remembers() {
			err = v.confirm(s, p, all.key(i))
		}
		return err == nil
	})
	return err
}

// applyAll stores the effects of all clauses that were decided. It stores nothing and returns
// limit.ErrNotKept if the journal refuses effects, or limit.ErrFull if memory is full and one of
// the keys would be new or would remember one more call. It also returns limit.ErrFull if a table
// has no room for a new key; then the effects of earlier clauses are stored.
func (v *Handle) applyAll(all *several) (err error) {
	switch {
	case v.refuses():
		return limit.ErrNotKept
	case all.grows && v.full():
		return limit.ErrFull
	}
	was := v.slack
	v.slack = overdraft // from here on, a clause cannot fail for lack of memory
	defer func() { v.slack = was }()
	v.visit(all.ask.DB, all.spots, all.key, func(i int, s *shard, p *place) bool {
		plan := &v.plan
		if err = plan.Again(i, &p.e); err == nil && plan.Action != decide.Keep {
			err = v.apply(s, p, all.key(i), &plan.Plan)
		}
		return err == nil
	})
	return err
}

// settle settles the reservation that the key of a has. If a.Linked is set, it has done nothing, because the
// reservation is of several keys. With an error nothing is stored: limit.ErrNotKept, if the journal refuses
// effects, or an error of [decide.Plan.One].
func (v *Handle) settle(a *decide.Ask) (err error) {
	h := v.hash(a.Key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, a.DB, h, a.Key)
	plan := &v.plan.Plan
	defer plan.Forget()
	switch err = plan.One(&p.e, v.now, a); {
	case err != nil || a.Linked:
		return err
	case plan.Action == decide.Keep && a.Repeats() && p.e.Kind.Remembers():
		return v.confirm(s, &p, a.Key)
	case plan.Action == decide.Keep:
		return nil
	case v.refuses():
		return limit.ErrNotKept
	}
	return v.apply(s, &p, a.Key, plan)
}

// settleSeveral settles the reservation of several limits that a names, at one instant. It locks all keys that may have
// a part of it: first the keys of the arguments, and if one of these has a link, also the keys of the link, which may
// have changed meanwhile. It does nothing and sets a.Linked to false if a is a [decide.Settle] and the link has gone
// meanwhile. With an error nothing is stored: limit.ErrNotKept, if the journal refuses effects, or an error of
// [decide.Settlements].
func (v *Handle) settleSeveral(a *decide.Ask) (err error) {
	s, plan := &v.settles, &v.plan.Plan
	var (
		spots []spot
		mine  bool
	)
	defer func() {
		v.unlockHere(mine)
		v.plan.Forget()
		s.Forget()
	}()
	s.Start(a)
	for more := true; more; more = s.More() {
		v.unlockHere(mine)
		var set shardSet
		spots, set = v.spread(s.Len(), s.Key)
		mine = v.lockSpots(&set, spots, maxHeldClauses)
		s.Begin(v.now)
		v.visit(a.DB, spots, s.Key, func(i int, _ *shard, p *place) bool {
			s.Find(plan, i, &p.e)
			return true
		})
	}
	if a.Linked = s.Linked(); a.Family == decide.Settle && !a.Linked {
		return nil
	}
	v.visit(a.DB, spots, s.Key, func(_ int, _ *shard, p *place) bool {
		s.Look(plan, &p.e)
		return true
	})
	if err = s.Check(); err != nil {
		return err
	}
	changes := false
	v.visit(a.DB, spots, s.Key, func(i int, _ *shard, p *place) bool {
		err = s.Settle(plan, i, &p.e)
		changes = changes || plan.Action != decide.Keep
		return err == nil
	})
	switch {
	case err != nil:
		return err
	case changes && v.refuses():
		return limit.ErrNotKept
	}
	a.Lapsed = 0
	was := v.slack
	v.slack = overdraft // a settlement must not fail for lack of memory
	defer func() { v.slack = was }()
	v.visit(a.DB, spots, s.Key, func(i int, sh *shard, p *place) bool {
		switch err = s.Settle(plan, i, &p.e); {
		case err != nil:
		case plan.Action != decide.Keep:
			err = v.apply(sh, p, s.Key(i), plan)
		case a.Repeats() && p.e.Kind.Remembers():
			err = v.confirm(sh, p, s.Key(i))
		}
		return err == nil
	})
	return err
}
