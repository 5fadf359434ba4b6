package ratelimit

import (
	"slices"
	"unsafe"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Waiting is a call under several policies that waits until it passes. It has the data that is
// needed in addition to the ask of [Decider.AskAll] to count and answer the call, and refers to no
// memory of the call or of a decider. Only one goroutine at a time may use it.
type Waiting struct {
	// Parts are the parts of the call. They have only the bytes that a [Notice] needs.
	Parts   []Part
	notices *Notices
	// apart has, at the index of each part that cannot deny the call, the ask about that part.
	apart []decide.Ask
	// banned says that bans deny the call: the Details of the parts are set.
	banned bool
}

// WaitAll returns the Waiting for a call that [Decider.AskAll] has prepared.
func (d *Decider) WaitAll(parts []Part) *Waiting {
	w := &Waiting{Parts: slices.Clone(parts), notices: d.service.Notices, apart: make([]decide.Ask, len(parts))}
	for i := range w.Parts {
		p := &w.Parts[i]
		if p.Lenient() {
			a := &w.apart[i]
			d.about(a, p, p.from, len(p.Limits.Clauses))
			a.Own(make([]byte, 0, a.Bytes()))
		}
		p.own()
	}
	return w
}

// Bytes returns about how many bytes of memory w keeps.
func (w *Waiting) Bytes() int {
	n := len(w.Parts) * int(unsafe.Sizeof(Part{})+unsafe.Sizeof(decide.Ask{}))
	for i := range w.apart {
		n += w.apart[i].Bytes() + len(w.apart[i].Clauses)*apartCost + len(w.Parts[i].Policy) + len(w.Parts[i].Key)
	}
	return n
}

// apartCost is the approximate memory, in bytes, of a clause of a part that cannot deny the call, with the decisions on
// it, but without the bytes of its key.
const apartCost = 512

// Apart calls f with each key that [Waiting.Charging] charges. The keys belong to w.
func (w *Waiting) Apart(f func(key []byte)) {
	for i := range w.apart {
		for j := range w.apart[i].Clauses {
			f(w.apart[i].Clauses[j].Key)
		}
	}
}

// Charging returns a store whose Decide has st decide the ask of the call and, if it passes, an ask for each part that
// cannot deny the call. An error of such a part counts as a denial by its limits. The keys of [Waiting.Apart] have to
// be locked if the caller holds locks of keys. [Waiting.Charged] counts the charges. Charging of a nil Waiting returns
// st.
func (w *Waiting) Charging(st Store) Store {
	if w == nil {
		return st
	}
	return charging{w, st}
}

// charging is the result of [Waiting.Charging].
type charging struct {
	*Waiting
	store Store
}

// Decide decides a and, if it passes, charges the parts: see [Store].
func (c charging) Decide(a *decide.Ask) {
	if c.store.Decide(a); a.Err != nil || a.Refused {
		return
	}
	for i := range c.Parts {
		if c.Parts[i].Lenient() {
			apart := &c.apart[i]
			apart.Err, apart.Lapsed, apart.Ends = nil, 0, 0
			c.store.Decide(apart)
		}
	}
}

// Charged counts, at now, the charges that the store of [Waiting.Charging] has made to the parts that cannot deny the
// call. The call has passed.
func (w *Waiting) Charged(now limit.Instant) {
	for i := range w.Parts {
		p, a := &w.Parts[i], &w.apart[i]
		if !p.Lenient() {
			continue
		}
		p.countLenient(a.Err != nil || a.Refused)
		if a.Err == nil {
			p.Details = slices.Clone(a.Details)
			w.notices.tell(&p.Lookup, now, p.Details)
			passEach(a.Details)
		}
	}
}

// Conclude sets the Details of the parts that can deny the call. a is the ask about these parts, which
// was decided without an error.
func (w *Waiting) Conclude(a *decide.Ask) {
	if w.banned {
		return
	}
	for i := range w.Parts {
		if p := &w.Parts[i]; !p.Lenient() {
			p.Details = a.Details[p.from : p.from+len(p.Limits.Clauses)]
		}
	}
}

// Answered counts the answer to the call in the counters of its policies, after [Waiting.Conclude].
// denied says whether the call is denied. A denied call counts only for the policies that deny it.
func (w *Waiting) Answered(denied bool) {
	for i := range w.Parts {
		p := &w.Parts[i]
		denies := denied && deniesAny(p.Details)
		if c := p.Counts(); c != nil && (denies || !denied) {
			c.Answered(denies)
		}
	}
}

// NoteWaiting counts, in the statistics of keys, the decision on a call with BLOCK that is answered
// at once. parts are the parts of the call, w is its Waiting after [Waiting.Conclude], and a is the
// ask about the parts that can deny the call.
func (d *Decider) NoteWaiting(parts []Part, w *Waiting, a *decide.Ask) {
	for i := range w.Parts {
		p := parts[i]
		p.Details = w.Parts[i].Details
		switch {
		case !p.Lenient():
			var is decide.Ask
			d.extract(&is, &p, a)
			d.Recorder.NoteClauses(p.From, &is, true)
		case p.Details != nil:
			d.Recorder.NoteClauses(p.From, &w.apart[i], true)
		}
	}
}
