package decide

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// One decides a at now. e is what a.Key holds, of kind [entry.None] if there is no such key
// or if it has expired at now. One reads e and never changes it, fills in the answer of a,
// and says in p what is to be done to the key.
//
// The error is why nothing was decided, and then nothing is to be done: [limit.ErrWrongType],
// [limit.ErrNotInteger] or that of a family. a.Err is left to the caller, whose store may
// fail as well. [Several] asks about many entries: see [Rounds]. So do the operations
// of Admin from Scan on, which whoever has all keys carries out.
func (p *Plan) One(e *entry.Entry, now limit.Instant, a *Ask) error {
	a.Now, a.Foreign = now, 0
	switch a.Family {
	case Cell:
		return p.decideCell(&a.Decision, e, now, &a.Quota, a.Quantity)
	case Window:
		err := p.decideWindow(&a.Decision, e, now, &a.Window)
		if p.Foreign && err == nil && !windowLooks(&a.Window) {
			a.Foreign = 1
		}
		return err
	case Bucket:
		err := p.decideBucket(&a.Decision, e, now, &a.Bucket)
		if p.Foreign && err == nil && !bucketLooks(&a.Bucket) {
			a.Foreign = 1
		}
		return err
	case Lease:
		return p.decideLease(&a.Decision, e, now, &a.Lease)
	case Cancel:
		p.cancelBucket(&a.Decision, e, now, &a.Bucket)
		return nil
	case Counter:
		return p.decideCounter(&a.Counted, e, now, &a.Counter)
	case Admin:
		return p.administer(e, now, &a.Admin, &a.Result)
	}
	p.Action = Keep
	return errNotOne
}
