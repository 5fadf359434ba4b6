package limiters_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command/policystore"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/registry"
)

// manyPolicies returns n policies, and spread over them exact overrides and prefixes for keys
// that no call uses. All have the same limits.
func manyPolicies(n, exact, prefixes int, limits ...string) *document.Document {
	d := &document.Document{Policies: make([]document.Policy, n)}
	for i := range d.Policies {
		d.Policies[i] = document.Policy{Name: fmt.Sprintf("policy%02d", i), Limits: limits}
	}
	add := func(i int, pattern string) {
		p := &d.Policies[i%n]
		p.Overrides = append(p.Overrides, document.Override{Pattern: pattern, Limits: []string{"TB 2000 1000 1"}})
	}
	for i := range exact {
		add(i, fmt.Sprintf("user:9%011d", i))
	}
	for i := range prefixes {
		add(i, fmt.Sprintf("tenant%d:*", i))
	}
	return d
}

// apply replaces the policies of the server by those of d.
func apply(tb testing.TB, b *inproc.Fed, d *document.Document) {
	tb.Helper()
	b.Server().Engine().WithStore(0, func(st env.Store) {
		_, err := b.Server().Engine().Options.Policies.Apply(policystore.Store(st.(policystore.Backing)), registry.Author{}, d, policy.Bounds{})
		require.NoError(tb, err)
	})
}

// TestUseAllocatesNothing: RL.USE allocates nothing, whether the limits of the policy or those of
// an entry apply, and with one clause or several.
func TestUseAllocatesNothing(t *testing.T) {
	effort.Alone(t)
	b := inproc.OpenTimed(t)
	d := manyPolicies(100, 10_000, 1000, "TB 200 100 1")
	d.Policies[1].Limits = []string{"SW 100 60", "TB 200 100 1", "CL 15 30 60", "CC 5 60"}
	d.Policies[2].Limits = []string{"SW 100 60 FIXED"}
	d.Policies[3].Limits = []string{"CC 5 60"}
	d.Policies[4].Limits = []string{"CL 15 30 60"}
	d.Policies[5].Shadow = true
	d.Policies[9].Limits = []string{"SW 500 MONTH ZONE Europe/Berlin", "SW 100 DAY ZONE Asia/Tokyo FROM 06:30"}
	ip := policy.KeyForm{IP: true, V4: 24, V6: 56}
	d.Policies[11].Key, d.Policies[11].Overrides = ip, []document.Override{
		{Pattern: "10.0.0.0/8", Limits: []string{"TB 2000 1000 1"}},
		{Pattern: "10.0.0.7/32", Limits: []string{"TB 3000 1000 1"}},
		{Pattern: "2001:db8::/32", Limits: []string{"TB 2000 1000 1"}},
		{Pattern: "*", Limits: []string{"TB 2000 1000 1"}},
	}
	d.Policies[12].Key, d.Policies[12].Overrides = ip, nil
	d.Policies[12].Limits = []string{"SW 100 60", "TB 200 100 1"}
	d.Policies[10].Limits = []string{"SW 500 MONTH ZONE Europe/Berlin"}
	d.Policies[13].Classes, d.Policies[13].Limits = "batch 30% report 60% web 0%", []string{"SW 100 60", "TB 200 100 1", "CC 5 60"}
	d.Policies[14].Classes = "batch 30%"
	d.Policies[15].Limits = []string{"SW 1 60", "BAN 1000000 3600 60"}
	d.Policies[16].Limits = []string{"SW 1 60", "TB 200 100 1", "BAN 1 60 3600"}
	d.Policies[17].Notify, d.Policies[17].Limits = 50, []string{"SW 2 3600 FIXED"}
	d.Policies[18].Notify, d.Policies[18].Shadow, d.Policies[18].Limits = 50, true, []string{"SW 2 3600 FIXED", "TB 1 1 3600"}
	apply(t, b, d)
	forever := b.Server().Engine().Options.Now().Add(time.Hour)
	b.Server().Engine().WithStore(0, func(st env.Store) {
		err := b.Server().Engine().Options.Policies.Update(policystore.Store(st.(policystore.Backing)), registry.Author{}, func(builder *policy.Builder, now limit.Instant) ([]registry.Edit, error) {
			limits := builder.Get(policy.Main, "policy06", "").Limits
			return []registry.Edit{
				registry.Set(&policy.Entry{Kind: policy.Candidate, Policy: "policy06", Limits: limits, Until: limit.MaxInstant}),
				registry.Set(&policy.Entry{Kind: policy.Boost, Policy: "policy07", Pattern: "boosted", Factor: 1500, Until: forever}),
				registry.Set(&policy.Entry{Kind: policy.Block, Policy: "policy07", Pattern: "blocked*", Until: forever}),
				registry.Set(&policy.Entry{Kind: policy.Exempt, Policy: "policy07", Pattern: "exempt", Until: forever}),
			}, nil
		})
		require.NoError(t, err)
	})
	for _, args := range [][]string{
		{"policy00", "key"},
		{"policy00", "user:900000000000"}, // an exact override
		{"policy00", "tenant0:x"},         // a prefix
		{"policy00", "key", "3", "PEEK"},
		{"policy01", "key", "MEMBER", "m", "WITHDETAILS", "MS"},
		{"policy02", "key"},
		{"policy03", "key", "MEMBER", "m"},
		{"policy04", "key"},
		{"policy05", "key"},
		{"policy06", "key"},
		{"policy09", "key"},
		{"policy10", "key"},
		{"policy11", "10.0.0.7"},
		{"policy11", "10.0.0.7:443"},
		{"policy11", "[2001:db8::1%eth0]:443"},
		{"policy11", "fe80::1%eth0"},
		{"policy11", "10.0.0.0/25"},
		{"policy12", "10.0.0.7", "1", "1", "WITHDETAILS"},
		{"policy11", "10.0.0.7", "AND", "policy12", "10.0.1.7", "AND", "policy12", "10.0.2.7", "AND", "policy00", "key"},
		{"policy11", "10.0.0.7", "201", "ANY", "policy12", "::ffff:10.0.0.7"},
		{"policy13", "key", "CLASS", "report", "MEMBER", "m"},
		{"policy13", "key", "PARTIAL", "KEEP", "50%", "MEMBER", "m", "WITHDETAILS"},
		{"policy13", "key", "KEEP", "100%", "MEMBER", "m"}, // denied
		{"policy14", "key", "CLASS", "batch"},
		{"policy14", "key", "KEEP", "7", "PARTIAL"},
		{"policy14", "key", "AND", "policy13", "key", "CLASS", "batch", "MEMBER", "m"},
		{"policy15", "key"}, // denied
		{"policy16", "key"}, // banned
		{"policy15", "key", "AND", "policy16", "other"},
		{"policy15", "key", "ANY", "policy16", "other"},
		{"policy17", "key"}, // denied
		{"policy18", "key", "WITHDETAILS"},
		{"policy18", "other", "AND", "policy17", "other", "WITHDETAILS"},
		{"rls.none", "key", "LIMIT", "100", "60"},
		{"rls.none", "key", "LIMIT", "1", "60000", "MS", "WITHDETAILS"}, // denied
		{"policy07", "boosted"},
		{"policy07", "blocked1"},
		{"policy07", "exempt"},
		{"policy00", "key", "AND", "policy01", "key", "3", "AND", "policy02", "key", "MEMBER", "m", "WITHDETAILS"},
		{"policy00", "key", "AND", "policy05", "key", "AND", "policy06", "key", "AND", "policy07", "exempt", "WITHDETAILS"},
		{"policy07", "blocked1", "AND", "policy07", "key"},
		{"policy00", "key", "ANY", "policy01", "key", "1", "1", "1", "1", "MEMBER", "m"},
		{"policy07", "blocked1", "ANY", "policy08", "none", "201", "ANY", "policy06", "key", "WITHDETAILS"},
	} {
		packet := inproc.Encode(nil, append([]string{"RL.USE"}, args...)...)
		reply := b.Packet(packet)
		require.NotEqual(t, byte('-'), reply[0], "%v: %s", args, reply)
		require.Zero(t, testing.AllocsPerRun(1000, func() { b.Packet(packet) }), "%v", args)
	}
}

// TestSettlingAllocatesNothing: what settles a reservation allocates nothing, with a policy or without.
func TestSettlingAllocatesNothing(t *testing.T) {
	effort.Alone(t)
	b := inproc.OpenTimed(t)
	d := manyPolicies(2, 0, 0, "SW 100 60 CALLS", "TB 200 100 1", "CC 5 60")
	d.Policies[1].Key = policy.KeyForm{IP: true, V4: 24, V6: 56}
	apply(t, b, d)
	b.Packet(inproc.Encode(nil, "TB.ACQUIRE", "bucket", "200", "100", "60", "5", "RESERVE", "r", "60"))
	b.Packet(inproc.Encode(nil, "RL.USE", "policy00", "key", "5", "RESERVE", "r", "60"))
	for _, args := range [][]string{
		{"RL.COMMIT", "bucket", "none", "5"},
		{"RL.COMMIT", "key", "none", "5", "POLICY", "policy00"},
		{"RL.COMMIT", "key", "none", "5", "6", "POLICY", "nosuch"},
		{"RL.COMMIT", "10.0.0.7:443", "none", "5", "POLICY", "policy01"},
		{"RL.CANCEL", "key", "none", "POLICY", "policy00"},
		{"RL.RENEW", "key", "none", "5000", "POLICY", "policy00", "MS"},
	} {
		packet := inproc.Encode(nil, args...)
		reply := b.Packet(packet)
		require.Equal(t, byte(':'), reply[0], "%v: %s", args, reply)
		require.Zero(t, testing.AllocsPerRun(1000, func() { b.Packet(packet) }), "%v", args)
	}
}

// kindOfCall is a kind of call that a benchmark compares with others: packets of pipelined calls, and the least time
// that a turn of them has taken.
type kindOfCall struct {
	name    string
	packets [][]byte
	fastest time.Duration
}

// pipelined is the number of calls of a packet.
const pipelined = 32

// takeTurns sends the packets of kinds to s, some of each kind in turn, and reports the time of a call in the fastest
// turn of each.
func takeTurns(b *testing.B, s *inproc.Fed, kinds []kindOfCall) {
	const turn = 25
	for n := 0; b.Loop(); n++ {
		for i := range kinds {
			k := &kinds[i]
			began := time.Now()
			var reply []byte
			for j := range turn {
				reply = s.Packet(k.packets[(n*turn+j)%len(k.packets)])
			}
			k.fastest = min(k.fastest, time.Since(began))
			require.Equal(b, byte('*'), reply[0])
		}
	}
	for i := range kinds {
		b.ReportMetric(float64(kinds[i].fastest)/turn/pipelined, kinds[i].name+"-ns")
	}
}

// BenchmarkUse compares RL.USE with the corresponding TB.ACQUIRE, in pipelines of 32 over 32,000
// keys, with 100 policies, 10,000 exact overrides and 1,000 prefixes. Both charge the same keys
// and take turns as in BenchmarkUsers: the fastest turn of each is reported.
func BenchmarkUse(b *testing.B) {
	const depth = pipelined
	// With these numbers a bucket is still in use at its next call, however long that takes.
	const capacity, count, period = "1000000", "1", "60"
	kinds := []kindOfCall{{name: "tb.acquire"}, {name: "rl.use"}}
	for i := range kinds {
		kinds[i].fastest = time.Hour
		for p := range 1000 {
			var packet bytes.Buffer
			for j := range depth {
				n := p*depth + j
				name, key := fmt.Sprintf("policy%02d", n%100), fmt.Sprintf("user:%012d", n)
				if i == 0 {
					packet.Write(inproc.Encode(nil, "TB.ACQUIRE", name+":"+key, capacity, count, period))
				} else {
					packet.Write(inproc.Encode(nil, "RL.USE", name, key))
				}
			}
			kinds[i].packets = append(kinds[i].packets, packet.Bytes())
		}
	}
	s := inproc.OpenTimed(b)
	apply(b, s, manyPolicies(100, 10_000, 1000, "TB "+capacity+" "+count+" "+period))
	takeTurns(b, s, kinds)
	b.ReportMetric(float64(kinds[1].fastest)/float64(kinds[0].fastest), "ratio")
}

// BenchmarkUseOfAddresses compares RL.USE with addresses under policies without KEY, with KEY IP 32 56, and with
// overrides of four prefix lengths in addition. It measures as BenchmarkUse does, over 32,000 addresses.
func BenchmarkUseOfAddresses(b *testing.B) {
	const depth = pipelined
	limits := []string{"TB 1000000 1 60"}
	kinds := []kindOfCall{{name: "no-key"}, {name: "key-ip"}, {name: "key-ip-4"}}
	d := &document.Document{}
	for i := range kinds {
		kinds[i].fastest = time.Hour
		for n := range 100 {
			p := document.Policy{Name: fmt.Sprint(kinds[i].name, n), Limits: limits}
			if i > 0 {
				p.Key = policy.KeyForm{IP: true, V4: 32, V6: 56}
			}
			for _, pattern := range []string{"10.0.0.0/8", "10.0.0.0/16", "10.0.0.0/24", "10.0.0.0/32"} {
				if i == 2 {
					p.Overrides = append(p.Overrides, document.Override{Pattern: pattern, Limits: limits})
				}
			}
			d.Policies = append(d.Policies, p)
		}
		for p := range 1000 {
			var packet bytes.Buffer
			for j := range depth {
				n := p*depth + j
				packet.Write(inproc.Encode(nil, "RL.USE", fmt.Sprint(kinds[i].name, n%100), fmt.Sprintf("10.20.%d.%d", n>>8, n&255)))
			}
			kinds[i].packets = append(kinds[i].packets, packet.Bytes())
		}
	}
	s := inproc.OpenTimed(b)
	apply(b, s, d)
	takeTurns(b, s, kinds)
}

// BenchmarkUseWithBans compares RL.USE under policies without BAN and with it, whose keys are not banned, were denied
// before, or are banned. It measures as BenchmarkUse does, over 32,000 keys.
func BenchmarkUseWithBans(b *testing.B) {
	const depth = pipelined
	kinds := []kindOfCall{{name: "no-ban"}, {name: "ban"}, {name: "ban-denied"}, {name: "banned"}}
	limits := [][]string{
		{"TB 1000000 1 60"},
		{"TB 1000000 1 60", "BAN 5 1h 1h"},
		{"TB 1 1 1h", "BAN 1000000 1d 1h"}, // each call but the first is denied and counted
		{"TB 1 1 1h", "BAN 1 1h 1h"},
	}
	d := &document.Document{}
	for i := range kinds {
		kinds[i].fastest = time.Hour
		d.Policies = append(d.Policies, document.Policy{Name: kinds[i].name, Limits: limits[i]})
		for p := range 1000 {
			var packet bytes.Buffer
			for j := range depth {
				packet.Write(inproc.Encode(nil, "RL.USE", kinds[i].name, fmt.Sprintf("user:%012d", p*depth+j)))
			}
			kinds[i].packets = append(kinds[i].packets, packet.Bytes())
		}
	}
	s := inproc.OpenTimed(b)
	apply(b, s, d)
	for i := range kinds { // the states that the calls find
		for _, packet := range kinds[i].packets {
			s.Packet(packet)
			s.Packet(packet)
		}
	}
	takeTurns(b, s, kinds)
}
