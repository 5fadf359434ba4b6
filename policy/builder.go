package policy

import (
	"errors"
	"hash/maphash"

	"github.com/cellserver/cellserver/limit"
)

// These are the default bounds of a [Builder]: see [Sizes].
const (
	DefaultPolicies  = 10_000
	DefaultOverrides = 1_000_000
	DefaultOthers    = 1_000_000
)

// These are the errors of [Builder.Set] for too many entries.
var (
	ErrTooManyPolicies  = errors.New("too many policies")
	ErrTooManyOverrides = errors.New("too many overrides")
	ErrTooManyOthers    = errors.New("too many boosts, blocks and exemptions")
)

// Builder holds the current entries and creates tables of them. The cost of a change, and of a
// table, is proportional to the changes since the previous table, not to the number of entries. It
// must not be used concurrently.
type Builder struct {
	most     Sizes
	policies hashed[*Policy]
	// gen is the present generation. Only parts of this generation may be changed, because older
	// ones belong to tables.
	gen      uint64
	limits   interned
	expiring expiries
	sizes    Sizes
	bytes    int64
}

// NewBuilder returns a builder without entries. most is the maximum number of entries of each kind;
// 0 means the default.
func NewBuilder(most Sizes) *Builder {
	orDefault := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	orDefault(&most.Policies, DefaultPolicies)
	orDefault(&most.Overrides, DefaultOverrides)
	orDefault(&most.Others, DefaultOthers)
	return &Builder{most: most, policies: hashed[*Policy]{seed: maphash.MakeSeed()}, gen: 1, limits: interned{}}
}

// Set adds a copy of e. It replaces an entry with the same kind, policy and pattern. It returns the
// error of [Entry.Check], [ErrTooManyPolicies], [ErrTooManyOverrides] or [ErrTooManyOthers]; then
// nothing has changed.
func (b *Builder) Set(e *Entry) error {
	if err := e.Check(); err != nil {
		return err
	}
	p := policyOf(&b.policies, e.Policy)
	var old *kept
	if p != nil {
		old = p.get(e.Kind, e.Pattern)
	}
	if old == nil {
		if err := b.room(e.Kind, p == nil); err != nil {
			return err
		}
	}
	p = b.own(p, e.Policy)
	k := &kept{Entry: *e}
	k.Policy = p.Name
	b.add(k)
	p.set(b.gen, k)
	if old != nil {
		b.drop(old)
	} else {
		p.countNetwork(b.gen, k.Pattern, 1)
	}
	return nil
}

// Delete removes the entry with the given kind, policy and pattern, and reports whether there was
// one. The pattern of [Main] and [Candidate] is "".
func (b *Builder) Delete(kind Kind, policy, pattern string) bool {
	p := policyOf(&b.policies, policy)
	if p == nil {
		return false
	}
	old := p.get(kind, pattern)
	if old == nil {
		return false
	}
	b.remove(p, old)
	return true
}

// DropExpired removes the entries that have expired at now, and returns them ordered by expiry.
func (b *Builder) DropExpired(now limit.Instant) []*Entry {
	var dropped []*Entry
	for len(b.expiring) > 0 && b.expiring.next() <= now {
		k := b.expiring[0]
		b.remove(policyOf(&b.policies, k.Policy), k)
		dropped = append(dropped, &k.Entry)
	}
	return dropped
}

// Recount makes c the counters of policy, if there is such a policy. It lets a policy that was
// removed and set again continue with its earlier counters.
func (b *Builder) Recount(policy string, c *Counts) {
	if p := policyOf(&b.policies, policy); p != nil && p.Counts != c {
		b.own(p, policy).Counts = c
	}
}

// Get returns the entry with the given kind, policy and pattern, or nil. The entry must not be
// changed.
func (b *Builder) Get(kind Kind, policy, pattern string) *Entry {
	p := policyOf(&b.policies, policy)
	if p == nil {
		return nil
	}
	if k := p.get(kind, pattern); k != nil {
		return &k.Entry
	}
	return nil
}

// Each does what [Table.Each] does, for the current entries. f must not change the builder.
func (b *Builder) Each(policy string, f func(*Entry) bool) { eachOf(&b.policies, policy, f) }

// Sizes returns the numbers of entries.
func (b *Builder) Sizes() Sizes { return b.sizes }

// Bytes estimates the memory of the current entries in bytes. Tables share this memory, except for
// what has changed since they were created.
func (b *Builder) Bytes() int64 { return b.bytes }

// Table returns a table of the current entries. Later changes of the builder do not change the
// table.
func (b *Builder) Table() *Table {
	b.gen++
	return &Table{policies: b.policies, sizes: b.sizes}
}

// remove removes k from p, which contains it.
func (b *Builder) remove(p *Policy, k *kept) {
	p = b.own(p, p.Name)
	p.remove(b.gen, k)
	p.countNetwork(b.gen, k.Pattern, -1)
	b.drop(k)
	if p.empty() {
		b.policies.remove(b.gen, b.hash(p.Name), named(p.Name))
		b.sizes.Policies--
		b.bytes -= policyBytes
	}
}

// room returns an error if one more entry of the given kind would be too many. first says that the
// entry needs one more policy.
func (b *Builder) room(kind Kind, first bool) error {
	switch {
	case first && b.sizes.Policies >= b.most.Policies:
		return ErrTooManyPolicies
	case kind == Override && b.sizes.Overrides >= b.most.Overrides:
		return ErrTooManyOverrides
	case kind > Override && b.sizes.Others >= b.most.Others:
		return ErrTooManyOthers
	}
	return nil
}

// own returns the policy called name in a form that may be changed. p is the current form of the
// policy, or nil if own has to make the policy.
func (b *Builder) own(p *Policy, name string) *Policy {
	switch {
	case p == nil:
		p = &Policy{Name: name, Counts: new(Counts), gen: b.gen, exact: hashed[*kept]{seed: b.policies.seed}}
		b.sizes.Policies++
		b.bytes += policyBytes
	case p.gen == b.gen:
		return p
	default:
		c := *p
		c.gen = b.gen
		p = &c
	}
	b.policies.set(b.gen, b.hash(name), p, named(name))
	return p
}

func (b *Builder) hash(name string) uint64 { return maphash.String(b.policies.seed, name) }

// These are estimates of memory in bytes: of a policy, of an entry without its texts, and of the
// node of a prefix. They were measured with many of each.
const (
	policyBytes = 320
	entryBytes  = 136
	prefixBytes = 112
)

// bytesOf estimates the memory of e in bytes, without its limits.
func bytesOf(e *Entry) int64 {
	n := entryBytes + len(e.Pattern) + len(e.Comment)
	if _, isPrefix := prefixOf(e.Pattern); isPrefix {
		n += prefixBytes
	}
	return int64(n)
}

// add adds k to the counts and to the entries that expire. It replaces the limits of k by those
// that entries with equal limits share.
func (b *Builder) add(k *kept) {
	var more int64
	k.Limits, more = b.limits.add(k.Limits)
	b.bytes += more + bytesOf(&k.Entry)
	b.count(k.Kind, 1)
	b.expiring.add(k)
}

// drop removes what add has added for k.
func (b *Builder) drop(k *kept) {
	b.bytes -= b.limits.drop(k.Limits) + bytesOf(&k.Entry)
	b.count(k.Kind, -1)
	b.expiring.drop(k)
}

func (b *Builder) count(kind Kind, n int) {
	switch {
	case kind == Override:
		b.sizes.Overrides += n
	case kind > Override:
		b.sizes.Others += n
	}
}
