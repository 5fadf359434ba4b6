package policy_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// bitsOf returns a network as a text of its bits with its family before them, such as "4:00001010".
func bitsOf(p netip.Prefix) string {
	var b strings.Builder
	family := "6:"
	if p.Addr().Is4() {
		family = "4:"
	}
	for _, c := range p.Addr().AsSlice() {
		fmt.Fprintf(&b, "%08b", c)
	}
	return family + b.String()[:p.Bits()]
}

// nets is a model of the entries of one policy: a list that it searches completely. It has networks as texts of
// bits, so that a network contains another one if its text is a prefix.
type nets map[id]struct {
	bits         string
	since, until limit.Instant
}

// find returns what sinceOf returns, for an address.
func (m nets) find(address netip.Prefix, now limit.Instant) (applied [4]limit.Instant) {
	longest, network := [4]int{-1, -1, -1, -1}, bitsOf(address)
	whole := bitsOf(netip.PrefixFrom(address.Addr(), address.Addr().BitLen()))
	for at, e := range m {
		bits := network
		if at.kind == policy.Block {
			bits = whole
		}
		if i := at.kind - policy.Override; now < e.until && strings.HasPrefix(bits, e.bits) && len(e.bits) > longest[i] {
			longest[i], applied[i] = len(e.bits), e.since
		}
	}
	return applied
}

// near returns a random address or network close to a few others, so that they contain each other.
func near(random *rand.Rand) netip.Prefix {
	var addr netip.Addr
	if random.IntN(2) == 0 {
		addr = netip.AddrFrom4([4]byte{10, byte(random.IntN(2)), byte(random.IntN(2) * 128), byte(random.IntN(3))})
	} else {
		b := [16]byte{0x20, 1, 0xd, 0xb8}
		b[5], b[7], b[15] = byte(random.IntN(2)), byte(random.IntN(3)*85), byte(random.IntN(2))
		addr = netip.AddrFrom16(b)
	}
	bits := addr.BitLen()
	if random.IntN(2) == 0 {
		bits = []int{0, 1, 7, 8, 9, 24, 31, 32, 47, 48, 56, 64, 127, 128}[random.IntN(14)]
		bits = min(bits, addr.BitLen())
	}
	return netip.PrefixFrom(addr, bits).Masked()
}

// TestNetworksModel sets and deletes entries for networks at random, also before their policy and with other
// patterns beside them, and compares lookups with the model. Earlier tables must not change.
func TestNetworksModel(t *testing.T) {
	effort.Alone(t)
	random := rand.New(rand.NewPCG(30, 1))
	limits := limitsOf(t, "TB 200 100 1")
	type old struct {
		table *policy.Table
		model nets
		now   limit.Instant
	}
	b, m, now, found := policy.NewBuilder(policy.Sizes{}), nets{}, limit.Instant(1), 0
	require.NoError(t, b.Set(&policy.Entry{Kind: policy.Block, Policy: "p0", Pattern: "10.0.0.7", Until: limit.MaxInstant})) // is no stored form
	require.NoError(t, b.Set(&policy.Entry{Kind: policy.Block, Policy: "p0", Pattern: "10.*", Until: limit.MaxInstant}))
	var was []old
	for step := range effort.Steps(10_000, 500_000) {
		if step == 100 {
			require.NoError(t, b.Set(&policy.Entry{Policy: "p0", Flags: policy.Flags{Key: policy.KeyForm{IP: true, V4: 24, V6: 56}}, Limits: limits, Until: limit.MaxInstant}))
		}
		e := &policy.Entry{Kind: policy.Override + policy.Kind(random.IntN(4)), Policy: "p0", Until: limit.MaxInstant, Since: limit.Instant(step + 1)}
		network := near(random)
		bits := bitsOf(network)
		if e.Pattern = network.String(); random.IntN(20) == 0 {
			e.Pattern, bits = "*", ""
		}
		at := id{e.Kind, e.Policy, e.Pattern}
		switch n := random.IntN(100); {
		case n < 45:
			if e.Kind == policy.Override {
				e.Limits = limits
			}
			if e.Kind == policy.Boost {
				e.Factor = 2000
			}
			if random.IntN(2) == 0 {
				e.Until = now.Add(1) + limit.Instant(random.IntN(300))
			}
			require.NoError(t, b.Set(e))
			m[at] = struct {
				bits         string
				since, until limit.Instant
			}{bits, e.Since, e.Until}
		case n < 90:
			_, there := m[at]
			require.Equal(t, there, b.Delete(e.Kind, e.Policy, e.Pattern))
			delete(m, at)
		default:
			if now += limit.Instant(random.IntN(20)); random.IntN(4) == 0 {
				for _, e := range b.DropExpired(now) {
					delete(m, id{e.Kind, e.Policy, e.Pattern})
				}
			}
		}
		if step < 100 || step%5 != 0 {
			continue
		}
		table := b.Table()
		if len(was) == 0 || step%500 == 0 {
			copied := nets{}
			for at, e := range m {
				copied[at] = e
			}
			was = append(was, old{table, copied, now})
		}
		for _, o := range []old{{table, m, now}, was[random.IntN(len(was))]} {
			for range 5 {
				address := near(random)
				if with := near(random).Addr(); with.Is4() == address.Addr().Is4() {
					address = netip.PrefixFrom(with, address.Bits()) // with bits of hosts
				}
				var a policy.Applied
				o.table.Policy([]byte("p0")).FindNetwork(address, o.now, &a)
				var got [4]limit.Instant
				for i, e := range []*policy.Entry{a.Override, a.Boost, a.Block, a.Exempt} {
					if e != nil {
						got[i] = e.Since
						found++
					}
				}
				require.Equal(t, o.model.find(address, o.now), got, "%s", address)
			}
		}
	}
	require.Greater(t, found, 1000)
}

// networksOf returns a table with one policy whose overrides are n networks of each of the given lengths.
func networksOf(t require.TestingT, n int, lengths ...int) *policy.Table {
	b := policy.NewBuilder(policy.Sizes{})
	limits := limitsOf(t, "TB 200 100 1")
	require.NoError(t, b.Set(&policy.Entry{Policy: "api", Flags: policy.Flags{Key: policy.KeyForm{IP: true, V4: 32, V6: 56}}, Limits: limits, Until: limit.MaxInstant}))
	for _, bits := range lengths {
		for i := range n {
			addr := netip.AddrFrom4([4]byte{byte(100 + i>>16), byte(i >> 8), byte(i), 0})
			e := &policy.Entry{Kind: policy.Override, Policy: "api", Pattern: netip.PrefixFrom(addr, bits).Masked().String(), Limits: limits, Until: limit.MaxInstant}
			require.NoError(t, b.Set(e))
		}
	}
	return b.Table()
}

func TestFindNetworkAllocatesNothing(t *testing.T) {
	effort.Alone(t)
	p := networksOf(t, 100, 8, 24, 32).Policy([]byte("api"))
	key := []byte("100.0.7.0")
	var a policy.Applied
	require.Zero(t, testing.AllocsPerRun(100, func() {
		address, _ := policy.ParseAddress(key)
		p.FindNetwork(address, 1, &a)
	}))
	require.Equal(t, "100.0.7.0/32", a.Override.Pattern)
}

// BenchmarkFindNetwork looks up an address among 10,000 networks of each of some lengths.
func BenchmarkFindNetwork(b *testing.B) {
	for _, lengths := range [][]int{{}, {24}, {8, 16, 24, 32}} {
		b.Run(fmt.Sprint(len(lengths)), func(b *testing.B) {
			p := networksOf(b, 10_000, lengths...).Policy([]byte("api"))
			key := []byte("100.0.7.9")
			var a policy.Applied
			b.ReportAllocs()
			for b.Loop() {
				address, _ := policy.ParseAddress(key)
				p.FindNetwork(address, 1, &a)
			}
		})
	}
}
