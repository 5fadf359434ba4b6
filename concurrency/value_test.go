package concurrency_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// filled returns a key on which so many members hold leases of 1 s, 2 s and so on. The order of
// the leases is unrelated to the names.
func filled(t require.TestingT, members int) *key {
	k := new(key)
	for i := range members {
		k.call(t, t0, acquire(fmt.Sprintf("member-%d", i*7919%members), int64(members), time.Duration(i+1)*time.Second))
	}
	return k
}

// filledPlaces returns the key of filled with two places for the member with the longest lease, so
// that its mode is Places.
func filledPlaces(t require.TestingT, members int) *key {
	k := filled(t, members)
	k.call(t, t0, placing(fmt.Sprintf("member-%d", (members-1)*7919%members), int64(members)+1, 2, time.Duration(members)*time.Second))
	return k
}

// placing returns an Acquire of so many places.
func placing(member string, most, places int64, lease time.Duration) *concurrency.Call {
	c := acquire(member, most, lease)
	c.Places = places
	return c
}

// sets are the keys of both modes with so many members.
func sets(t require.TestingT, members int) map[concurrency.Mode]*key {
	return map[concurrency.Mode]*key{concurrency.Leases: filled(t, members), concurrency.Places: filledPlaces(t, members)}
}

func TestListLayout(t *testing.T) {
	var k key
	k.call(t, t0, acquire("bb", 2, 2*time.Second))
	k.call(t, t0, acquire("", 2, time.Second))
	want := []byte{1, 2}
	want = binary.LittleEndian.AppendUint64(want, uint64(t0)+1e9)
	want = append(want, 0, 0)
	want = binary.LittleEndian.AppendUint64(want, uint64(t0)+2e9)
	want = append(want, 2, 0, 'b', 'b')
	require.Equal(t, want, k.value)
}

// TestSetsChangeTheirFormAt65And32Members: a set becomes an index at 65 members and a list again
// at 32, so adding and removing one member does not convert it back and forth.
func TestSetsChangeTheirFormAt65And32Members(t *testing.T) {
	k := filled(t, 64)
	require.Equal(t, byte(1), k.value[0])
	flips := 0
	for range 20 {
		form := k.value[0]
		k.call(t, t0, acquire("one more", 100, time.Hour))
		k.call(t, t0, release("one more"))
		if k.value[0] != form {
			flips++
		}
	}
	require.Equal(t, 1, flips)
	require.Equal(t, byte(2), k.value[0])
	for i := range 64 {
		require.Equal(t, 64-i > 32, k.value[0] == 2, "%d members", 64-i)
		require.NoError(t, concurrency.Check(k.mode, k.value))
		k.call(t, t0, release(fmt.Sprintf("member-%d", i)))
	}
	require.Equal(t, concurrency.None, k.mode)
}

// TestMemory measures the memory of a set beside the names: full, after many renewals, and
// drained.
func TestMemory(t *testing.T) {
	const members, name = 20_000, len("member-12345")
	k := filled(t, members)
	least := members * (40 + name)
	full := len(k.value)
	require.Less(t, full, least*3/2+100)
	for i := range members {
		k.call(t, t0, release(fmt.Sprintf("member-%d", i)))
		k.call(t, t0, acquire(fmt.Sprintf("MEMBER-%d", i), members, time.Hour))
	}
	require.Less(t, len(k.value), least*3/2+100, "after every name has changed")
	for i := range members - 100 {
		k.call(t, t0, release(fmt.Sprintf("MEMBER-%d", i)))
	}
	require.Less(t, len(k.value), 4*100*(40+name)+8192, "after most have gone")

	k = filled(t, 10)
	require.Len(t, k.value, 2+10*(10+len("member-1")))
}

// TestExpiredMembersLeaveAFewPerCall: each call removes a few expired members of a set in use.
// The set never grows beyond the largest number of members that were live at one time.
func TestExpiredMembersLeaveAFewPerCall(t *testing.T) {
	const members = 1000
	k := filled(t, members)
	k.call(t, t0, acquire("keeper", members+1, 3*time.Hour))
	size, now := len(k.value), t0.Add(time.Hour)
	for i := range members / 7 {
		require.LessOrEqual(t, len(k.value), size)
		d := k.call(t, now, acquire(fmt.Sprintf("new %d", i), members, time.Hour))
		require.Equal(t, int64(members-i-2), d.Remaining)
		require.NoError(t, concurrency.Check(k.mode, k.value))
	}
	stored := int64(0)
	concurrency.Describe(k.mode, k.value, now, func(field string, value int64) {
		if field == "members" {
			stored = value
		}
	})
	require.Equal(t, int64(members/7+1), stored)
}

// TestHostileNamesAndExpiriesKeepSetsFastAndSound: no order of names and expiries makes a large
// set slow or unsound.
func TestHostileNamesAndExpiriesKeepSetsFastAndSound(t *testing.T) {
	const members = 3000
	orders := map[string]func(i int) (name int, lease time.Duration){
		"rising":      func(i int) (int, time.Duration) { return i, time.Duration(i + 1) },
		"falling":     func(i int) (int, time.Duration) { return members - i, time.Duration(members - i) },
		"crossing":    func(i int) (int, time.Duration) { return i, time.Duration(members - i) },
		"all at once": func(i int) (int, time.Duration) { return i, 1 },
		"zigzag": func(i int) (int, time.Duration) {
			if i%2 == 0 {
				return i, time.Duration(members + i)
			}
			return members + i, time.Duration(members - i)
		},
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			var k key
			for i := range members {
				n, lease := order(i)
				k.call(t, t0, acquire(fmt.Sprintf("%06d", n), members, lease*time.Second))
				if i%100 == 0 {
					require.NoError(t, concurrency.Check(k.mode, k.value), "balanced after %d", i)
				}
			}
			for i := range members {
				n, _ := order(i)
				require.True(t, k.call(t, t0, release(fmt.Sprintf("%06d", n))).Allowed())
				if i%100 == 0 && k.mode != concurrency.None {
					require.NoError(t, concurrency.Check(k.mode, k.value), "balanced without %d", i)
				}
			}
			require.Equal(t, concurrency.None, k.mode)
		})
	}
}

// TestEffects: the effects of the plans are enough to know the holders of leases.
func TestEffects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			k        key
			follower = map[string]limit.Instant{}
			now      = t0
		)
		for range rapid.IntRange(1, 100).Draw(t, "calls") {
			now += limit.Instant(rapid.Int64Range(0, 3).Draw(t, "step"))
			member := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "member"))
			lease := time.Duration(rapid.Int64Range(1, 9).Draw(t, "lease"))
			c := []*concurrency.Call{
				acquire(member, 3, lease), release(member), renew(member, lease), peek(member, 3, lease),
			}[rapid.IntRange(0, 3).Draw(t, "op")]
			var p concurrency.Plan
			k.plan(t, now, c, &p)
			switch p.Effect {
			case concurrency.Holds:
				follower[string(p.Member)] = p.Until
			case concurrency.Gone:
				delete(follower, string(p.Member))
			}
			for name := range 6 {
				until, held := follower[fmt.Sprint(name)]
				held = held && until > now
				require.Equal(t, held, k.call(t, now, release(fmt.Sprint(name))).Allowed())
				if held {
					k.call(t, now, acquire(fmt.Sprint(name), 99, until.Sub(now)))
				}
			}
		}
	})
}

// FuzzCheck: with any bytes that Check accepts, calls can be decided and applied, and leave bytes
// that Check accepts.
func FuzzCheck(f *testing.F) {
	for _, members := range []int{1, 2, 64, 65, 100} {
		for _, k := range sets(f, members) {
			f.Add(k.value, []byte("\x00\x01\x02\x03\x04\x05"))
		}
	}
	drained := filled(f, 65)
	for i := range 32 {
		drained.call(f, t0, release(fmt.Sprintf("member-%d", i)))
	}
	f.Add(drained.value, []byte("\x01\x01\x01\x05\x09"))
	f.Add([]byte{1, 0}, []byte{0})
	f.Add([]byte{2}, []byte{0})
	f.Fuzz(func(t *testing.T, value, script []byte) {
		require.Error(t, concurrency.Check(concurrency.None, value))
		mode := concurrency.Leases
		if concurrency.Check(mode, value) != nil {
			mode = concurrency.Places
		}
		if concurrency.Check(mode, value) != nil {
			return
		}
		k := key{mode: mode, value: append([]byte(nil), value...), expiry: limit.MaxInstant}
		now := t0
		for _, b := range script[:min(len(script), 50)] {
			member := fmt.Sprintf("member-%d", b>>2)
			switch b & 3 {
			case 0:
				k.call(t, now, placing(member, 1<<40, int64(b>>5), time.Duration(b)+1))
			case 1:
				k.call(t, now, release(member))
			case 2:
				k.call(t, now, renew(member, time.Duration(b)+1))
			case 3:
				now = now.Add(time.Duration(b) * time.Second)
				k.call(t, now, peek(member, 1, 1))
			}
			if k.mode != concurrency.None {
				require.NoError(t, concurrency.Check(k.mode, k.value))
			}
		}
	})
}

// TestCheckRefuses truncates and damages values. Values that Check still accepts, for example
// with another name or another unused byte, must work.
func TestCheckRefuses(t *testing.T) {
	require.Error(t, concurrency.Check(concurrency.Leases, nil))
	flips := []byte{0x01, 0x02, 0x80, 0xff}
	if !effort.Long() {
		flips = flips[:1]
	}
	for _, members := range []int{3, 66} {
		for mode, k := range sets(t, members) {
			value := k.value
			require.NoError(t, concurrency.Check(mode, value))
			for _, other := range []concurrency.Mode{concurrency.None, concurrency.Leases, concurrency.Places, 3} {
				if other != mode {
					require.ErrorIs(t, concurrency.Check(other, value), concurrency.ErrCorrupt)
				}
			}
			for n := range value {
				if concurrency.Check(mode, value[:n]) == nil {
					require.Equal(t, 66, members, "a list of %d bytes cut at %d", len(value), n)
					survives(t, mode, value[:n])
				}
			}
			accepted := 0
			for i := range value {
				for _, flip := range flips {
					bad := append([]byte(nil), value...)
					bad[i] ^= flip
					if concurrency.Check(mode, bad) == nil {
						accepted++
						survives(t, mode, bad)
					}
				}
			}
			require.Less(t, accepted, len(flips)*len(value)*3/4, "most damage shows")
		}
	}
	require.Error(t, concurrency.Check(concurrency.Leases, filled(t, 70).value[:40]))
}

// survives makes calls on a value that Check has accepted.
func survives(t *testing.T, mode concurrency.Mode, value []byte) {
	t.Helper()
	k := key{mode: mode, value: append([]byte(nil), value...), expiry: limit.MaxInstant}
	for i := range 40 {
		member := fmt.Sprintf("member-%d", i)
		k.call(t, t0.Add(time.Duration(i)*time.Second), acquire(member, 1000, time.Hour))
		k.call(t, t0.Add(time.Duration(i)*time.Second), release(member))
	}
	if k.mode != concurrency.None {
		require.NoError(t, concurrency.Check(k.mode, k.value))
	}
}

// TestCallsAllocateNothing: if each new value uses the memory of the value before the last, a set
// that does not grow allocates nothing.
func TestCallsAllocateNothing(t *testing.T) {
	for _, members := range []int{10, 1000} {
		for mode, k := range sets(t, members) {
			allocatesNothing(t, k, members)
			require.Equal(t, mode, k.mode)
		}
	}
}

func allocatesNothing(t *testing.T, k *key, members int) {
	t.Helper()
	most := int64(members) + 1
	calls := []*concurrency.Call{
		acquire("member-3", most, time.Hour), renew("member-4", time.Hour), release("member-5"),
		acquire("member-5", most, time.Hour), placing("refused", most, 2, time.Hour),
	}
	var p concurrency.Plan
	round := func() {
		for _, c := range calls {
			if err := concurrency.Decide(k.mode, k.value, k.expiry, t0, c, &p); err != nil {
				panic(err)
			}
			k.apply(&p)
		}
	}
	for range 2 * members {
		round()
	}
	require.Zero(t, testing.AllocsPerRun(1000, round), "%d members", members)
}

func BenchmarkAcquire(b *testing.B) {
	for _, members := range []int{1, 10, 60, 1000, 100_000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			k := filled(b, members)
			names := make([]*concurrency.Call, members)
			for i := range names {
				names[i] = acquire(fmt.Sprintf("member-%d", i), int64(members), time.Hour)
			}
			var p concurrency.Plan
			now := t0
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % members
				now++
				if err := concurrency.Decide(k.mode, k.value, k.expiry, now, names[i], &p); err != nil {
					b.Fatal(err)
				}
				k.apply(&p)
			}
		})
	}
}

// BenchmarkChurn releases one member and acquires for another.
func BenchmarkChurn(b *testing.B) {
	for _, members := range []int{10, 60, 1000, 100_000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			k := filled(b, members)
			go1, come := release(""), acquire("", int64(members), time.Hour)
			name := make([]byte, 0, 32)
			var p concurrency.Plan
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				gone := i % members
				if i < members {
					name = append(append(name[:0], "member-"...), fmt.Sprint(gone)...)
				} else {
					name = append(append(name[:0], "comer-"...), fmt.Sprint(i-members)...)
				}
				go1.Member = name
				if err := concurrency.Decide(k.mode, k.value, k.expiry, t0, go1, &p); err != nil || !p.Decision.Allowed() {
					b.Fatal(err, string(name))
				}
				k.apply(&p)
				name = append(append(name[:0], "comer-"...), fmt.Sprint(i)...)
				come.Member = name
				if err := concurrency.Decide(k.mode, k.value, k.expiry, t0, come, &p); err != nil || !p.Decision.Allowed() {
					b.Fatal(err, string(name))
				}
				k.apply(&p)
				i++
			}
		})
	}
}
