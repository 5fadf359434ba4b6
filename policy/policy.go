package policy

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/cellserver/cellserver/limit"
)

// Policy is a policy of a [Table], with the overrides, boosts, blocks and exemptions that belong to
// it. It must not be changed, except for its Counts.
type Policy struct {
	Name string
	// Main is the policy itself, and Candidate the entry that is tried beside it. Both may be nil.
	Main, Candidate *Entry
	// Counts is shared by all tables for as long as the policy has any entry.
	Counts *Counts

	// singles holds the entries of the kinds without a pattern: Main and Candidate.
	singles [Override]*kept
	// exact has the entries with exact patterns. prefixes has the entries whose patterns are
	// prefixes; it is nil if there are none.
	exact    hashed[*kept]
	prefixes *prefix
	// networks has the lengths of those exact patterns that are networks; it is nil if there are none.
	networks *networks
	// gen is the generation of the Builder that may change the policy. In later generations it is
	// copied first.
	gen uint64
}

// Counts are the counters of the calls of one policy. They do not count calls that neither charge
// nor return units. They are safe for concurrent use.
type Counts struct {
	// Allowed and Denied count the calls that charge units, by their reply, whichever entry has
	// determined the reply.
	Allowed, Denied atomic.Int64
	// Exempted counts calls that an exemption allowed. ExemptedDenied counts the ones that the
	// limits would have denied.
	Exempted, ExemptedDenied atomic.Int64
	// Blocked counts calls that a block denied, and Banned those that a ban denied.
	Blocked, Banned atomic.Int64
	// ShadowDenied counts calls that were allowed only because the policy is a shadow.
	ShadowDenied atomic.Int64
	// TryBoth, TryOnlyOld, TryOnlyNew and TryNeither count the calls that a candidate decided too:
	// those allowed by both, only by the policy, only by the candidate, and by neither.
	TryBoth, TryOnlyOld, TryOnlyNew, TryNeither atomic.Int64
	// Estimated is the sum of the units of the reservations that were committed in time, and Actual is the sum of the
	// actual quantities of these commits.
	Estimated, Actual atomic.Int64
}

// Answered counts a call in Denied if denied is true, otherwise in Allowed.
func (c *Counts) Answered(denied bool) {
	if denied {
		c.Denied.Add(1)
	} else {
		c.Allowed.Add(1)
	}
}

// Settled adds to Estimated and Actual, which stay at the largest int64 if the sum is more. Both numbers must
// not be negative.
func (c *Counts) Settled(estimated, actual int64) {
	add := func(to *atomic.Int64, n int64) {
		for {
			was := to.Load()
			if to.CompareAndSwap(was, limit.SatAdd(was, n)) {
				return
			}
		}
	}
	add(&c.Estimated, estimated)
	add(&c.Actual, actual)
}

// ResetTry resets the counters of a candidate.
func (c *Counts) ResetTry() {
	for _, n := range []*atomic.Int64{&c.TryBoth, &c.TryOnlyOld, &c.TryOnlyNew, &c.TryNeither} {
		n.Store(0)
	}
}

// Applied has the entries that apply to a key. A field is nil if no entry of its kind applies. An
// exemption has precedence over a block, and a block over an override. A boost multiplies the
// limits in force.
type Applied struct {
	Exempt, Block, Override, Boost *Entry
}

// Find sets a to the entries that apply to key at now. For each kind this is the entry whose
// pattern is key, if that entry is in force. Otherwise it is the entry with the longest matching
// prefix among those in force. Find allocates nothing. If Main.Key has IP, [Policy.FindNetwork] is used instead.
func (p *Policy) Find(key []byte, now limit.Instant, a *Applied) {
	*a = Applied{}
	if p.prefixes != nil {
		p.findPrefixes(key, now, a)
	}
	p.findExact(key, now, a)
}

// findExact does what Find does, but only for entries whose pattern is not a prefix. It replaces
// entries in a.
func (p *Policy) findExact(key []byte, now limit.Instant, a *Applied) {
	if p.exact.count == 0 {
		return
	}
	hash := maphash.Bytes(p.exact.seed, key)
	bucket := p.exact.bucket(hash)
	for i := range bucket {
		if s := &bucket[i]; s.hash == hash && s.value.Pattern == string(key) {
			a.take(&s.value.Entry, now)
		}
	}
}

// findPrefixes does what Find does, for the patterns that are prefixes. It visits the matching
// prefixes from the shortest to the longest, so that entries with longer prefixes replace others in
// a.
func (p *Policy) findPrefixes(key []byte, now limit.Instant, a *Applied) {
	for n := p.prefixes; ; {
		for _, k := range n.here {
			a.take(&k.Entry, now)
		}
		if n, key = n.next(key); n == nil {
			return
		}
	}
}

// take stores e in the field of its kind if e is in force at now.
func (a *Applied) take(e *Entry, now limit.Instant) {
	if !e.InForce(now) {
		return
	}
	switch e.Kind {
	case Override:
		a.Override = e
	case Boost:
		a.Boost = e
	case Block:
		a.Block = e
	case Exempt:
		a.Exempt = e
	}
}

// InForce returns the limits that apply before a boost: the limits of a.Override if it is set, and
// otherwise the limits of Main, which must not be nil then.
func (p *Policy) InForce(a *Applied) *Limits {
	if a.Override != nil {
		return a.Override.Limits
	}
	return p.Main.Limits
}

func (p *Policy) empty() bool {
	return p.Main == nil && p.Candidate == nil && p.exact.count == 0 && p.prefixes == nil
}

// each calls f for all entries, until f returns false. The result is false if f has returned false.
func (p *Policy) each(f func(*Entry) bool) bool {
	for _, e := range [...]*Entry{p.Main, p.Candidate} {
		if e != nil && !f(e) {
			return false
		}
	}
	one := func(k *kept) bool { return f(&k.Entry) }
	return p.exact.each(one) && p.prefixes.each(one)
}

// get returns the entry with the given kind and pattern, or nil.
func (p *Policy) get(kind Kind, pattern string) *kept {
	if !kind.HasPattern() {
		if pattern != "" {
			return nil
		}
		return p.singles[kind]
	}
	text, isPrefix := prefixOf(pattern)
	if isPrefix {
		return p.prefixes.get(text, kind)
	}
	k, _ := p.exact.lookup(maphash.String(p.exact.seed, text), is(kind, text))
	return k
}

// set adds k, in place of an entry with the same kind and pattern. p must be of the generation gen.
func (p *Policy) set(gen uint64, k *kept) {
	if !k.Kind.HasPattern() {
		p.setSingle(k.Kind, k)
		return
	}
	text, isPrefix := prefixOf(k.Pattern)
	if !isPrefix {
		p.exact.set(gen, maphash.String(p.exact.seed, text), k, is(k.Kind, text))
		return
	}
	if p.prefixes == nil {
		p.prefixes = &prefix{gen: gen}
	}
	p.prefixes = p.prefixes.set(gen, text, k)
}

// remove removes k, which must be an entry of p. p must be of the generation gen.
func (p *Policy) remove(gen uint64, k *kept) {
	text, isPrefix := prefixOf(k.Pattern)
	switch {
	case !k.Kind.HasPattern():
		p.setSingle(k.Kind, nil)
	case isPrefix:
		p.prefixes = p.prefixes.remove(gen, text, k.Kind)
	default:
		p.exact.remove(gen, maphash.String(p.exact.seed, text), is(k.Kind, text))
	}
}

// setSingle stores k, which may be nil, as the entry of a kind without a pattern.
func (p *Policy) setSingle(kind Kind, k *kept) {
	var e *Entry
	if k != nil {
		e = &k.Entry
	}
	if p.singles[kind] = k; kind == Main {
		p.Main = e
	} else {
		p.Candidate = e
	}
}

func is(kind Kind, pattern string) func(*kept) bool {
	return func(k *kept) bool { return k.Kind == kind && k.Pattern == pattern }
}
