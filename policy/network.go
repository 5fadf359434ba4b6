package policy

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/limit"
)

// networks has the prefix lengths of those exact patterns of a policy that are networks, whether the keys of the
// policy are addresses or not: records are read in any order, so the policy itself may come last. As with
// [hashed], networks of the present generation may be changed, and older ones belong to tables.
type networks struct {
	v4, v6 []netLength
	gen    uint64
}

// netLength is a prefix length in bits, and the number of entries whose patterns have it, which is not 0. Lists of
// lengths are in ascending order.
type netLength struct{ bits, entries int }

// list returns the lengths for the family of addr.
func (n *networks) list(addr netip.Addr) *[]netLength {
	if addr.Is4() {
		return &n.v4
	}
	return &n.v6
}

// maxNetworkText is the maximum length in bytes of the text of a network: 8 groups, 7 colons and "/128".
const maxNetworkText = 8*4 + 7 + 4

// networkOf returns the network whose canonical text is pattern. ok is false if pattern is not such
// a text.
func networkOf(pattern string) (n netip.Prefix, ok bool) {
	if len(pattern) > maxNetworkText || !strings.Contains(pattern, "/") {
		return n, false
	}
	if n, ok = ParseAddress([]byte(pattern)); !ok || n.Masked().String() != pattern {
		return netip.Prefix{}, false
	}
	return n.Masked(), true
}

// countNetwork adds more to the number of entries with the prefix length of pattern, if pattern is a network. p
// must be of the generation gen.
func (p *Policy) countNetwork(gen uint64, pattern string, more int) {
	network, ok := networkOf(pattern)
	if !ok {
		return
	}
	n := p.networks
	switch {
	case n == nil:
		n = &networks{gen: gen}
	case n.gen != gen:
		n = &networks{slices.Clone(n.v4), slices.Clone(n.v6), gen}
	}
	p.networks = n
	list := n.list(network.Addr())
	i, found := slices.BinarySearchFunc(*list, network.Bits(), func(l netLength, bits int) int { return l.bits - bits })
	if !found {
		*list = slices.Insert(*list, i, netLength{bits: network.Bits()})
	}
	if (*list)[i].entries += more; (*list)[i].entries == 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	if len(n.v4)+len(n.v6) == 0 {
		p.networks = nil
	}
}

// FindNetwork does what [Policy.Find] does for a key that is an address or a network, a result of [ParseAddress]. For
// each kind it finds the entry in force whose pattern is the longest network that contains all of address, and
// otherwise the one with the pattern "*". Other patterns match no address. A block also applies if its pattern contains
// only the address with which a network is written, so that a client cannot evade a block of 10.0.0.7 by the key
// 10.0.0.7/31. FindNetwork allocates nothing. It looks up a network for each prefix length that the patterns of the
// policy have.
func (p *Policy) FindNetwork(address netip.Prefix, now limit.Instant, a *Applied) {
	*a = Applied{}
	if p.prefixes != nil {
		for _, k := range p.prefixes.here {
			a.take(&k.Entry, now)
		}
	}
	if p.networks == nil {
		return
	}
	var room [maxNetworkText]byte
	addr := address.Addr()
	for _, l := range *p.networks.list(addr) { // entries of longer networks replace those of shorter ones in a
		before := *a
		p.findExact(netip.PrefixFrom(addr, l.bits).Masked().AppendTo(room[:0]), now, a)
		if l.bits > address.Bits() {
			before.Block = a.Block
			*a = before
		}
	}
}
