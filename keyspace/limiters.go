package keyspace

import (
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// Throttle decides quantity cells against q, as CL.THROTTLE, and stores the effect.
// A plain string that is an int64 is taken for a TAT. The errors are
// limit.ErrWrongType, limit.ErrNotInteger and limit.ErrFull; nothing is stored then.
func (v *View) Throttle(db int, key []byte, q *gcra.Quota, quantity int64) (limit.Decision, error) {
	h := v.ks.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	p := s.find(db, h, key)
	tat, err := storedTAT(&p.e)
	if err != nil {
		return limit.Decision{}, err
	}
	next, d, write := gcra.Decide(tat, v.now, q, quantity)
	if !write {
		return d, nil
	}
	if err := s.putCell(&p, key, next); err != nil {
		return limit.Decision{}, err
	}
	return d, nil
}
