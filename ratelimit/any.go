package ratelimit

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Any decides a call under several policies, of which the first that passes is charged, as are those with the flag
// Count that were tried before it, and counts
// the answer. [Decider.FindAll] has looked up its parts. Any sets the Details of the parts that it
// tries, in their order: the last of them passes, or else all parts deny the call. Then the result
// is the decision of the part that would pass first, by RetryAfter. Any uses a. The mode must be
// neither Partial nor Block.
//
// The errors are those of [Decider.Ask] and of the store; at is the index of the part.
func (d *Decider) Any(parts []Part, a *decide.Ask) (whole *limit.Decision, at int, err error) {
	if _, at, err = d.prepare(parts, false); err != nil {
		return nil, at, err
	}
	for i := range parts {
		p := &parts[i]
		is, err := d.tryPart(p, a)
		if err != nil {
			return nil, i, err
		}
		if i == 0 || is.Refused == 0 || sooner(&is, &d.whole) {
			d.whole = is
		}
		if is.Refused == 0 {
			break
		}
	}
	return &d.whole, 0, nil
}

// tryPart decides the call for p alone, of the parts that Any tries, and counts the answer. It uses a.
func (d *Decider) tryPart(p *Part, a *decide.Ask) (limit.Decision, error) {
	n := len(p.Limits.Clauses)
	if p.Blocked() {
		p.Details = d.main.Details[p.from : p.from+n]
		d.denyInto(&p.Lookup, a, p.Details)
		return p.Details[0], nil
	}
	d.about(a, p, p.from, n)
	if d.store.Decide(a); a.Err != nil {
		return limit.Decision{}, a.Err
	}
	p.Details = a.Details
	is, denied := a.Binding(), a.Refused
	if p.lenient() {
		p.countLenient(denied)
		p.Details = d.keep(p.from, a.Details...)
		pass(&is)
		passEach(a.Details)
	}
	d.Recorder.NoteClauses(p.From, a, true)
	if !a.Repeats() {
		d.countDenial(&p.Lookup, &is)
		d.service.Notices.tell(&p.Lookup, p.Now, p.Details)
	}
	d.countPart(p, denied, is.Refused != 0)
	return is, nil
}

// sooner reports whether a call that is denied by a would pass before one that is denied by b.
func sooner(a, b *limit.Decision) bool {
	return a.RetryAfter != limit.NoRetry && (b.RetryAfter == limit.NoRetry || a.RetryAfter < b.RetryAfter)
}
