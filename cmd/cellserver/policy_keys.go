package main

import (
	"context"
	"hash/maphash"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
)

// fewPolicies is the maximum number of policies for which the keys of each policy are searched
// separately. Each search scans all keys of the server.
const fewPolicies = 3

// countKeys returns for each change how many keys it affects. A key counts for the entry that is in
// force for it afterwards, or for the removed entry that was in force before.
func countKeys(ctx context.Context, client *redis.Client, changes []document.Change, before, after *document.Document) ([]int, error) {
	c := keyCounter{counts: make([]int, len(changes)), policies: map[string]*policyChanges{}, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	old, now := byName(before), byName(after)
	for i := range changes {
		p := c.policies[changes[i].Policy]
		if p == nil {
			p = newPolicyChanges(old[changes[i].Policy], now[changes[i].Policy])
			c.policies[changes[i].Policy] = p
		}
		p.add(changes[i].Pattern, i)
	}
	// The names of policies contain no special characters of patterns.
	patterns := []string{"*:*"}
	if len(c.policies) <= fewPolicies {
		patterns = nil
		for _, name := range slices.Sorted(maps.Keys(c.policies)) {
			patterns = append(patterns, name+":*")
		}
	}
	for _, pattern := range patterns {
		keys := client.Scan(ctx, 0, pattern, 1000).Iterator()
		for keys.Next(ctx) {
			c.add(keys.Val())
		}
		if err := keys.Err(); err != nil {
			return nil, err
		}
	}
	return c.counts, nil
}

func byName(d *document.Document) map[string]*document.Policy {
	table := make(map[string]*document.Policy, len(d.Policies))
	for i := range d.Policies {
		table[d.Policies[i].Name] = &d.Policies[i]
	}
	return table
}

// keyCounter counts each key once, although SCAN may return a key several times, and a key has a
// state for each clause. It remembers a hash of each key.
type keyCounter struct {
	counts   []int
	policies map[string]*policyChanges
	seed     maphash.Seed
	seen     map[uint64]struct{}
}

// add counts the key to which the state key state belongs, for each change that affects the key,
// unless the key has been counted.
func (c *keyCounter) add(state string) {
	name, of := policy.ParseStateKey([]byte(state))
	p, key := c.policies[string(name)], string(of)
	if p == nil {
		return
	}
	hash := maphash.String(c.seed, string(name)+":"+key)
	if _, again := c.seen[hash]; again {
		return
	}
	c.seen[hash] = struct{}{}
	for _, i := range p.concerns(key) {
		c.counts[i]++
	}
}

type policyChanges struct {
	// before and after have the overrides of the policy before and after the changes. They are nil
	// if the policy does not exist then.
	before, after *patternTable
	// flags says that the flags of the policy change, which affects all keys, including the keys of
	// overrides.
	flags bool
	// entries maps patterns to the indexes of changes, with "" for the policy itself.
	entries map[string]int
	// networks has those patterns of entries that are networks, if the keys of the policy are addresses.
	networks []changedNetwork
}

// changedNetwork is a network with the index of the change that concerns it.
type changedNetwork struct {
	network netip.Prefix
	change  int
}

func newPolicyChanges(before, after *document.Policy) *policyChanges {
	p := &policyChanges{entries: map[string]int{}}
	if before != nil {
		p.before = newPatternTable(before)
	}
	if after != nil {
		p.after = newPatternTable(after)
	}
	p.flags = before != nil && after != nil && before.Flags != after.Flags
	return p
}

// add adds the i-th change, which is about pattern.
func (p *policyChanges) add(pattern string, i int) {
	p.entries[pattern] = i
	if network, ok := policy.ParseAddress([]byte(pattern)); ok && (p.after.ofNetworks() || p.before.ofNetworks()) {
		p.networks = append(p.networks, changedNetwork{network, i})
	}
}

// concerns returns the indexes of the changes that affect key: to the entry that is in force for it
// afterwards, to a removed entry that was in force before, and to the flags. A key that is a network is also
// affected by a change to an entry for a part of it.
func (p *policyChanges) concerns(key string) (list []int) {
	now, goes := "", ""
	if p.after != nil {
		now = p.after.find(key)
		if i, ok := p.entries[now]; ok {
			list = append(list, i)
		}
	}
	if p.before != nil {
		goes = p.before.find(key)
		if i, ok := p.entries[goes]; ok && (p.after == nil || goes != now && goes != "" && !p.after.has(goes)) {
			list = append(list, i)
		}
	}
	if i, ok := p.entries[""]; ok && p.flags && now != "" {
		list = append(list, i)
	}
	if len(p.networks) == 0 {
		return list
	}
	if address, ok := policy.ParseAddress([]byte(key)); ok {
		for _, n := range p.networks {
			if n.network.Bits() > address.Bits() && n.network.Overlaps(address) {
				list = append(list, n.change)
			}
		}
	}
	return list
}

// ofNetworks reports whether the patterns of t, which may be nil, are networks.
func (t *patternTable) ofNetworks() bool { return t != nil && t.networks }

// patternTable finds the override that is in force for a key.
type patternTable struct {
	patterns map[string]struct{}
	// networks says that the keys of the policy are addresses, so that the patterns are networks.
	networks bool
	// lengths are the lengths of the patterns that end in *, without the star, the longest first.
	lengths []int
}

func newPatternTable(p *document.Policy) *patternTable {
	t := &patternTable{patterns: map[string]struct{}{}, networks: p.Key.IP}
	for i := range p.Overrides {
		pattern := p.Overrides[i].Pattern
		t.patterns[pattern] = struct{}{}
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			t.lengths = append(t.lengths, len(prefix))
		}
	}
	slices.SortFunc(t.lengths, func(a, b int) int { return b - a })
	t.lengths = slices.Compact(t.lengths)
	return t
}

func (t *patternTable) has(pattern string) bool {
	_, ok := t.patterns[pattern]
	return ok
}

// find returns the pattern of the override that is in force for key, "" if there is none.
func (t *patternTable) find(key string) string {
	if t.networks {
		return t.findNetwork(key)
	}
	if t.has(key) && !strings.HasSuffix(key, "*") {
		return key
	}
	for _, n := range t.lengths {
		if n <= len(key) && t.has(key[:n]+"*") {
			return key[:n] + "*"
		}
	}
	return ""
}

// findNetwork does what find does, for a key that is a network.
func (t *patternTable) findNetwork(key string) string {
	if address, ok := policy.ParseAddress([]byte(key)); ok {
		for n := address.Bits(); n >= 0; n-- {
			if network := netip.PrefixFrom(address.Addr(), n).Masked().String(); t.has(network) {
				return network
			}
		}
	}
	if t.has("*") {
		return "*"
	}
	return ""
}
