package policy

import "hash/maphash"

// Table holds all policies at the time when a [Builder] created it. It is immutable, so it may be
// read concurrently. The zero Table is empty.
type Table struct {
	policies hashed[*Policy]
	sizes    Sizes
}

// Sizes has the numbers of policies and of other entries.
type Sizes struct {
	// Policies is the number of names of policies that have any entry.
	Policies int
	// Overrides is the number of overrides of all policies.
	Overrides int
	// Others is the number of boosts, blocks and exemptions of all policies.
	Others int
}

// Policy returns the policy called name. It returns nil if there is no [Main] of that name, because
// the other entries of a policy have no effect without it. Policy allocates nothing.
func (t *Table) Policy(name []byte) *Policy {
	if t.policies.count == 0 {
		return nil
	}
	hash := maphash.Bytes(t.policies.seed, name)
	bucket := t.policies.bucket(hash)
	for i := range bucket {
		if s := &bucket[i]; s.hash == hash && s.value.Name == string(name) && s.value.Main != nil {
			return s.value
		}
	}
	return nil
}

// Each calls f for the entries of the policy called policy, or of all policies if policy is "",
// until f returns false. The order is undefined. Each also visits the entries of policies without a
// [Main].
func (t *Table) Each(policy string, f func(*Entry) bool) { eachOf(&t.policies, policy, f) }

// EachPolicy calls f for all policies with a [Main], in undefined order.
func (t *Table) EachPolicy(f func(p *Policy)) {
	t.policies.each(func(p *Policy) bool {
		if p.Main != nil {
			f(p)
		}
		return true
	})
}

// Sizes returns the numbers of policies and entries of the table.
func (t *Table) Sizes() Sizes { return t.sizes }

func eachOf(policies *hashed[*Policy], name string, f func(*Entry) bool) {
	if name == "" {
		policies.each(func(p *Policy) bool { return p.each(f) })
		return
	}
	if p := policyOf(policies, name); p != nil {
		p.each(f)
	}
}

// policyOf returns the policy called name, whether it has a Main or not, or nil if there is none.
func policyOf(policies *hashed[*Policy], name string) *Policy {
	if policies.count == 0 { // the zero Table has no seed for hashes
		return nil
	}
	p, _ := policies.lookup(maphash.String(policies.seed, name), named(name))
	return p
}

func named(name string) func(*Policy) bool {
	return func(p *Policy) bool { return p.Name == name }
}
