package keyspace

import (
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Throttle decides quantity cells against q, as CL.THROTTLE, and stores the effect.
// A plain string that is an int64 is taken for a TAT. The errors are
// limit.ErrWrongType, limit.ErrNotInteger and limit.ErrFull; nothing is stored then.
func (v *Handle) Throttle(db int, key []byte, q *gcra.Quota, quantity int64) (d limit.Decision, err error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	tat, err := entry.StoredTAT(&p.e)
	if err != nil {
		return limit.Decision{}, err
	}
	if next, write := gcra.DecideInto(&d, tat, v.now, q, quantity); write {
		if v.refuses() {
			return limit.Decision{}, limit.ErrNotKept
		}
		err = s.putCell(&p, key, next)
	}
	return d, err
}

// Allow decides c, as SW.ALLOW, and stores the effect. The errors are
// limit.ErrWrongType, limit.ErrFull and those of slidingwindow.Decide; nothing is
// stored then.
func (v *Handle) Allow(db int, key []byte, c *slidingwindow.Call) (limit.Decision, error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	plan := &v.window
	if err := decideWindow(&p.e, v.now, c, plan); err != nil {
		return limit.Decision{}, err
	}
	if plan.Action != slidingwindow.Keep && v.refuses() {
		return limit.Decision{}, limit.ErrNotKept
	}
	return plan.Decision, v.applyWindow(s, &p, key, plan, c.Quantity < 0)
}

// Acquire decides c, as TB.ACQUIRE, and stores the effect. The errors are
// limit.ErrWrongType, limit.ErrFull and those of tokenbucket.Decide; nothing is
// stored then.
func (v *Handle) Acquire(db int, key []byte, c *tokenbucket.Call) (limit.Decision, error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	plan := &v.bucket
	if err := decideBucket(&p.e, v.now, c, plan); err != nil {
		return limit.Decision{}, err
	}
	if plan.Action != tokenbucket.Keep && v.refuses() {
		return limit.Decision{}, limit.ErrNotKept
	}
	return plan.Decision, v.applyBucket(s, &p, key, plan)
}

// Lease decides c, as CC.ACQUIRE, CC.RELEASE and CC.RENEW, and stores the effect.
// The errors are limit.ErrWrongType, limit.ErrFull and those of concurrency.Decide;
// nothing is stored then.
func (v *Handle) Lease(db int, key []byte, c *concurrency.Call) (limit.Decision, error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	if p.e.Kind != entry.None && !p.e.Kind.IsLease() {
		return limit.Decision{}, limit.ErrWrongType
	}
	plan := &v.lease
	err := concurrency.Decide(p.e.Kind.LeaseMode(), p.e.Value, p.e.Expiry, v.now, c, plan)
	if err != nil {
		return limit.Decision{}, err
	}
	if plan.Action != concurrency.Keep && v.refuses() {
		plan.Member = nil
		return limit.Decision{}, limit.ErrNotKept
	}
	switch plan.Action {
	case concurrency.Store:
		// Even an acquired lease may be one that now ends earlier than it did.
		err = v.store(s, &p, key, entry.OfLease(plan.Mode), plan.Expiry, plan, true)
	case concurrency.Delete:
		s.remove(&p, key)
	}
	plan.Member = nil
	return plan.Decision, err
}

// CancelAcquire gives back what c took earlier, for a caller that has gone away
// before the instant it was told to wait for. A key that is no bucket any more is
// left alone.
func (v *Handle) CancelAcquire(db int, key []byte, c *tokenbucket.Call) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	if !p.e.Kind.IsBucket() {
		return
	}
	plan := &v.bucket
	tokenbucket.Cancel(p.e.Kind.BucketMode(), p.e.Value, v.now, c, plan)
	_ = v.applyBucket(s, &p, key, plan) // only a new key could be refused
}

// putCell stores tat and its natural expiry, or deletes a key whose TAT has passed.
func (s *shard) putCell(p *place, key []byte, tat limit.Instant) error {
	if tat <= s.last {
		if p.e.Kind != entry.None {
			s.remove(p, key)
		}
		return nil
	}
	e := entry.Entry{Kind: entry.Cell, Expiry: min(tat, entry.NoExpiry-1)}
	e.Value = entry.AppendCell(s.scratch[:0], tat, e.Expiry)
	return s.put(p, key, e)
}

func decideWindow(e *entry.Entry, now limit.Instant, c *slidingwindow.Call, plan *slidingwindow.Plan) error {
	if e.Kind != entry.None && !e.Kind.IsWindow() {
		return limit.ErrWrongType
	}
	return slidingwindow.Decide(e.Kind.WindowMode(), e.Value, e.Expiry, now, c, plan)
}

func decideBucket(e *entry.Entry, now limit.Instant, c *tokenbucket.Call, plan *tokenbucket.Plan) error {
	if e.Kind != entry.None && !e.Kind.IsBucket() {
		return limit.ErrWrongType
	}
	return tokenbucket.Decide(e.Kind.BucketMode(), e.Value, e.Expiry, now, c, plan)
}

func (v *Handle) applyWindow(s *shard, p *place, key []byte, plan *slidingwindow.Plan, refund bool) error {
	switch plan.Action {
	case slidingwindow.Store:
		return v.store(s, p, key, entry.OfWindow(plan.Mode), plan.Expiry, plan, refund)
	case slidingwindow.Delete:
		s.remove(p, key)
	}
	return nil
}

func (v *Handle) applyBucket(s *shard, p *place, key []byte, plan *tokenbucket.Plan) error {
	switch plan.Action {
	case tokenbucket.Store:
		return v.store(s, p, key, entry.OfBucket(plan.Mode), plan.Expiry, plan, false)
	case tokenbucket.Delete:
		s.remove(p, key)
	}
	return nil
}

// applier is the plan of a family, which turns the stored bytes into the next ones,
// in place or in the capacity of dst.
type applier interface {
	Apply(value, dst []byte) []byte
}

// differ is a plan that can say what it changes in a large value; see AppendDelta of
// the families.
type differ interface {
	AppendDelta(dst, value []byte) (delta []byte, ok bool)
}

// deltaOf returns what plan, which is about to be applied, changes in the value at p,
// or nil if the whole is to be recorded, or nothing.
func (v *Handle) deltaOf(s *shard, p *place, k entry.Kind, plan applier) []byte {
	if s.recorder == nil || k != p.e.Kind || len(p.e.Value) <= wholeBound || !effect.Patchable(k) {
		return nil
	}
	delta, ok := plan.(differ).AppendDelta(v.delta[:0], p.e.Value)
	v.delta = delta[:0]
	if !ok {
		return nil
	}
	return delta
}

// store stores what plan makes of the value at p. frees says that those who wait
// should look again; they should as well if the limiter has become another or will
// be unused earlier than before.
func (v *Handle) store(s *shard, p *place, key []byte, k entry.Kind, expiry limit.Instant, plan applier, frees bool) error {
	delta := v.deltaOf(s, p, k, plan)
	value := plan.Apply(p.e.Value, v.scratch[:0])
	if cap(value) > cap(v.scratch) && cap(value) <= maxScratch && !sameMemory(value, p.e.Value) {
		v.scratch = value[:0]
	}
	if frees || k != p.e.Kind || expiry < p.e.Expiry {
		s.freed(p.db, key)
	}
	e := entry.Entry{Kind: k, Expiry: min(expiry, entry.NoExpiry-1), Value: value}
	if delta == nil {
		return s.put(p, key, e)
	}
	s.recorder.Patch(p.db, key, k, e.Expiry, delta)
	s.replace(p, key, e)
	return nil
}

func sameMemory(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
