package keyspace

import (
	"bytes"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
)

// administer carries out an ask of family [decide.Admin]: a scan, a count, a flush, a description
// or a change of one key. It sets a.Now and a.Result. Only callers that put every request into a
// [decide.Ask], whatever the store is, need administer. Commands call the methods of Handle
// instead, which do not copy the keys.
func (v *Handle) administer(a *decide.Ask) (err error) {
	c, r := &a.Admin, &a.Result
	a.Now = v.now
	switch c.Op {
	case decide.Scan:
		*r = decide.AdminResult{}
		r.Cursor = v.Scan(a.DB, c.Cursor, c.Count, func(key []byte, k entry.Kind) {
			r.Keys = append(r.Keys, decide.Named{Key: bytes.Clone(key), Type: k.Type()})
		})
	case decide.Count:
		*r = decide.AdminResult{Number: int64(v.Len(a.DB))}
	case decide.Flush:
		*r = decide.AdminResult{Done: true}
		v.Flush(a.DB)
	case decide.Describe:
		*r = decide.AdminResult{}
		r.Found, err = v.Describe(a.DB, a.Key, c.By, func(name, text string, number int64, isText bool) {
			r.Fields = append(r.Fields, decide.Field{Name: name, Text: text, Number: number, IsText: isText})
		})
	default:
		return v.administerOne(a)
	}
	return err
}

// administerOne carries out a, an administrative ask about the key a.Key, which may be of any kind.
// It fills in the answer, and removes the key or changes its expiry if the ask demands that. It
// returns the error of [decide.Plan.One].
func (v *Handle) administerOne(a *decide.Ask) error {
	h := v.hash(a.Key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, a.DB, h, a.Key)
	e, plan := p.e, &v.plan.Plan
	e.Kind = base(e.Kind)
	err := plan.One(&e, v.now, a)
	switch plan.Action {
	case decide.Remove:
		s.remove(&p, a.Key)
	case decide.Store:
		s.setExpiry(&p, a.Key, plan.Expiry)
	}
	return err
}
