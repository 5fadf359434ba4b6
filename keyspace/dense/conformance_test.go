package dense_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/tabletest"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/limit"
)

// storage is what a keyspace needs of a table.
type storage interface {
	Find(hash uint32, key []byte) (r dense.Ref, k entry.Kind, expiry limit.Instant, value []byte)
	Insert(hash uint32, key []byte, e entry.Entry) bool
	Store(r dense.Ref, e entry.Entry)
	Remove(r dense.Ref)
	At(r dense.Ref) (key []byte, e entry.Entry)
	Scan(cursor uint64, count int, f func(key []byte, e entry.Entry)) (next uint64)
	Due(pos *uint64, budget *int, now limit.Instant) (dense.Ref, bool)
	Random(x uint64) dense.Ref
	Cost(r dense.Ref) int64
	Len() int
	Free()
}

type newStorage func(m *dense.Memory, hash func([]byte) uint32) storage

// storages are the tables that must pass this suite.
var storages = map[string]newStorage{
	"map":   func(m *dense.Memory, hash func([]byte) uint32) storage { return tabletest.New(m, hash) },
	"dense": func(m *dense.Memory, hash func([]byte) uint32) storage { return dense.New(mapped, m, hash) },
	// The same on Go's heap, where the race detector sees accesses, and as on other systems.
	"dense on the heap": func(m *dense.Memory, hash func([]byte) uint32) storage {
		return dense.New(dense.NewHeapArena(), m, hash)
	},
}

// mapped is an arena that all tests share, so that they map little memory.
var mapped = dense.NewArena()

// fixture is a table under test with the arguments that it was made with.
type fixture struct {
	storage
	mem  *dense.Memory
	hash func(key []byte) uint32
}

func newFixture(t testing.TB, make newStorage, hash func(key []byte) uint32) *fixture {
	f := &fixture{mem: new(dense.Memory), hash: hash}
	f.storage = make(f.mem, hash)
	t.Cleanup(func() {
		f.Free()
		require.Zero(t, f.mem.Used(), "free gives all memory back")
	})
	return f
}

// add inserts a key that must be new.
func (f *fixture) add(t testing.TB, key string, e entry.Entry) {
	require.True(t, f.Insert(f.hash([]byte(key)), []byte(key), e), key)
}

func (f *fixture) get(key string) (dense.Ref, entry.Entry) {
	r, k, at, value := f.Find(f.hash([]byte(key)), []byte(key))
	return r, entry.Entry{Kind: k, Expiry: at, Value: value}
}

// keys returns all entries of a whole scan, and fails the test for a key that is seen twice
// although nothing changed.
func (f *fixture) keys(t testing.TB, count int) map[string]entry.Entry {
	seen := make(map[string]entry.Entry)
	for c := uint64(0); ; {
		require.Less(t, c, uint64(1)<<cursorBits)
		c = f.Scan(c, count, func(key []byte, e entry.Entry) {
			if _, twice := seen[string(key)]; twice {
				require.Fail(t, "seen twice", key)
			}
			e.Value = bytes.Clone(e.Value)
			seen[string(key)] = e
		})
		if c == 0 {
			return seen
		}
	}
}

// cursorBits is the number of bits of a cursor: see [dense.Table.Scan].
const cursorBits = 40

var testSeed = maphash.MakeSeed()

func goodHash(key []byte) uint32 { return uint32(maphash.Bytes(testSeed, key)) }

// poorHash gives many keys the same 32 bits, and only few different upper bits.
func poorHash(key []byte) uint32 { return goodHash(key) & 0xfff0000f }

func TestStorageConformance(t *testing.T) {
	checks := []struct {
		name string
		run  func(t *testing.T, f *fixture)
	}{
		{"finds what was inserted", findsWhatWasInserted},
		{"keeps values of any length", keepsAnyLength},
		{"keeps keys of any length", keepsAnyKey},
		{"changes values in place", changesInPlace},
		{"keeps the expiry apart from the value", keepsExpiryApart},
		{"finds what is due", findsDue},
		{"draws evenly", drawsEvenly},
		{"counts memory", countsMemory},
		{"scans all while it changes", scansWhileChanging},
		{"goes on from a cursor it never gave", takesAnyCursor},
	}
	for name, make := range storages {
		for hashName, hash := range map[string]func([]byte) uint32{"good": goodHash, "poor": poorHash} {
			for _, c := range checks {
				t.Run(name+"/"+hashName+" hash/"+c.name, func(t *testing.T) { c.run(t, newFixture(t, make, hash)) })
			}
		}
	}
}

func findsWhatWasInserted(t *testing.T, f *fixture) {
	const n = 20_000
	for i := range n {
		_, e := f.get(fmt.Sprint("k", i))
		require.Equal(t, entry.None, e.Kind)
		f.add(t, fmt.Sprint("k", i), entry.Entry{Kind: entry.String, Expiry: limit.Instant(i), Value: fmt.Append(nil, "v", i)})
	}
	require.Equal(t, n, f.Len())
	for i := range n {
		r, e := f.get(fmt.Sprint("k", i))
		require.Equal(t, entry.Entry{Kind: entry.String, Expiry: limit.Instant(i), Value: fmt.Append(nil, "v", i)}, e)
		if i%3 == 0 {
			f.Remove(r)
		}
	}
	for i := range n {
		r, e := f.get(fmt.Sprint("k", i))
		require.Equal(t, i%3 == 0, e.Kind == entry.None)
		if e.Kind != entry.None {
			key, same := f.At(r)
			require.Equal(t, fmt.Sprint("k", i), string(key))
			require.Equal(t, e, same)
		}
	}
	require.Len(t, f.keys(t, 10), f.Len())
}

func value(n int) []byte {
	v := make([]byte, n)
	for i := range v {
		v[i] = byte(i*7 + n)
	}
	return v
}

// lengths returns the lengths around every boundary that a storage is likely to have.
func lengths() (l []int) {
	for n := range 100 {
		l = append(l, n)
	}
	return append(l, 127, 128, 129, 255, 256, 500, 512, 1000, 1024, 2000, 2047, 2048, 4000, 4095, 4096, 4097, 8192,
		16384, 65535, 65536, 100_000, 1<<20)
}

func keepsAnyLength(t *testing.T, f *fixture) {
	for _, n := range lengths() {
		f.add(t, fmt.Sprint("k", n), entry.Entry{Kind: entry.List, Expiry: 5, Value: value(n)})
	}
	for _, n := range lengths() {
		_, e := f.get(fmt.Sprint("k", n))
		require.True(t, bytes.Equal(value(n), e.Value), n)
	}
	// Every value is replaced by one of another length and restored.
	l := lengths()
	for i, n := range l {
		m := l[len(l)-1-i]
		for _, to := range []int{m, 0, n} {
			r, e := f.get(fmt.Sprint("k", n))
			e.Value = value(to)
			f.Store(r, e)
			_, e = f.get(fmt.Sprint("k", n))
			require.True(t, bytes.Equal(value(to), e.Value), "%d to %d", n, to)
		}
	}
	for _, n := range l {
		_, e := f.get(fmt.Sprint("k", n))
		require.True(t, bytes.Equal(value(n), e.Value), n)
	}
}

func keepsAnyKey(t *testing.T, f *fixture) {
	long := bytes.Repeat([]byte{0, 255, '\n'}, 16<<10/3)
	for n := range 200 {
		f.add(t, string(long[:n]), entry.Entry{Kind: entry.Cell, Expiry: limit.Instant(n), Value: nil})
	}
	f.add(t, string(long), entry.Entry{Kind: entry.Cell, Expiry: 7, Value: value(8)})
	for n := range 200 {
		_, e := f.get(string(long[:n]))
		require.Equal(t, limit.Instant(n), e.Expiry)
		require.Empty(t, e.Value)
	}
	_, e := f.get(string(long))
	require.Equal(t, value(8), e.Value)
}

func changesInPlace(t *testing.T, f *fixture) {
	f.add(t, "k", entry.Entry{Kind: entry.String, Expiry: 1, Value: value(40)})
	for i := range 200 {
		r, e := f.get("k")
		e.Value[3]++
		f.Store(r, e)
		_, e = f.get("k")
		require.Equal(t, value(40)[3]+byte(i+1), e.Value[3])
	}
	// Extend the value within its capacity, and cut it.
	want := value(10)
	r, e := f.get("k")
	e.Value = append(e.Value[:0], want...)
	f.Store(r, e)
	for len(want) < 9000 {
		r, e = f.get("k")
		require.True(t, bytes.Equal(want, e.Value))
		if free := cap(e.Value) - len(e.Value); free > 0 {
			want = append(want, value(free)...)
			e.Value = append(e.Value, value(free)...)
		} else {
			want = append(want, 1, 2, 3)
			e.Value = append(bytes.Clone(e.Value), 1, 2, 3)
		}
		f.Store(r, e)
	}
	for len(want) > 0 {
		r, e = f.get("k")
		require.True(t, bytes.Equal(want, e.Value))
		want = want[:len(want)*7/8]
		e.Value = e.Value[:len(want)]
		f.Store(r, e)
	}
	_, e = f.get("k")
	require.Empty(t, e.Value)
}

func keepsExpiryApart(t *testing.T, f *fixture) {
	for i := range 1000 {
		f.add(t, fmt.Sprint(i), entry.Entry{Kind: entry.Cell, Expiry: limit.Instant(i), Value: binary.LittleEndian.AppendUint64(nil, uint64(i))})
	}
	for i := range 1000 {
		r, e := f.get(fmt.Sprint(i))
		e.Expiry = entry.NoExpiry - limit.Instant(i)
		f.Store(r, e)
	}
	for i := range 1000 {
		_, e := f.get(fmt.Sprint(i))
		require.Equal(t, entry.NoExpiry-limit.Instant(i), e.Expiry)
		require.Equal(t, uint64(i), binary.LittleEndian.Uint64(e.Value))
	}
}

func findsDue(t *testing.T, f *fixture) {
	const n = 10_000
	for i := range n {
		f.add(t, fmt.Sprint(i), entry.Entry{Kind: entry.String, Expiry: limit.Instant(i), Value: value(i % 300)})
	}
	removed, looked := 0, 0
	for pos, passes := uint64(0), 0; passes < 2; {
		budget := 10
		for budget > 0 {
			r, ok := f.Due(&pos, &budget, n/2)
			if !ok {
				break
			}
			_, e := f.At(r)
			require.LessOrEqual(t, e.Expiry, limit.Instant(n/2))
			f.Remove(r)
			removed++
		}
		require.GreaterOrEqual(t, budget, 0)
		looked += 10 - budget
		if pos == 0 && budget > 0 {
			passes++
		}
	}
	require.Equal(t, n/2+1, removed)
	require.Equal(t, n/2-1, f.Len())
	require.LessOrEqual(t, looked, 3*n, "nothing is looked at again and again")
}

func drawsEvenly(t *testing.T, f *fixture) {
	const n, draws = 300, 30_000
	for i := range n {
		f.add(t, fmt.Sprint(i), entry.Entry{Kind: entry.String, Expiry: 1, Value: value(i % 60)})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	hits := make(map[string]int)
	for range draws {
		key, _ := f.At(f.Random(rng.Uint64()))
		hits[string(key)]++
	}
	require.Len(t, hits, n)
	for _, h := range hits {
		require.InDelta(t, draws/n, h, 80)
	}
}

func countsMemory(t *testing.T, f *fixture) {
	empty := f.mem.Used()
	sum, cost := 0, int64(0)
	for i := range 30_000 {
		key := fmt.Sprint("key:", i)
		v := value(i % 200)
		f.add(t, key, entry.Entry{Kind: entry.String, Expiry: 1, Value: v})
		sum += len(key) + len(v)
	}
	for key := range f.keys(t, 100) {
		r, _ := f.get(key)
		c := f.Cost(r)
		require.Positive(t, c)
		cost += c
	}
	full := f.mem.Used()
	require.Greater(t, full, int64(sum), "no less than what is stored")
	require.InEpsilon(t, full-empty, cost, 0.5, "the costs of the keys make up the memory")
	for i := range 30_000 {
		r, _ := f.get(fmt.Sprint("key:", i))
		f.Remove(r)
	}
	require.Zero(t, f.Len())
	require.Less(t, f.mem.Used(), full/5, "memory comes back as keys go")
}

func scansWhileChanging(t *testing.T, f *fixture) {
	rng := rand.New(rand.NewPCG(3, 4))
	var others []string // grow in even rounds and shrink in odd ones
	serial := 0
	for round := range 6 {
		steady := map[string]bool{}
		for i := range 3000 {
			key := fmt.Sprint("steady", round, i)
			f.add(t, key, entry.Entry{Kind: entry.String, Expiry: 1, Value: value(rng.IntN(50))})
			steady[key] = true
		}
		for c := uint64(0); ; {
			c = f.Scan(c, 1+rng.IntN(300), func(key []byte, _ entry.Entry) { delete(steady, string(key)) })
			if c == 0 {
				break
			}
			grow := round%2 == 0
			for range rng.IntN(2000) {
				switch {
				case grow && len(others) < 60_000:
					key := fmt.Sprint("other", serial)
					serial++
					f.add(t, key, entry.Entry{Kind: entry.String, Expiry: 1, Value: value(rng.IntN(50))})
					others = append(others, key)
				case !grow && len(others) > 0:
					k := rng.IntN(len(others))
					r, _ := f.get(others[k])
					f.Remove(r)
					others[k] = others[len(others)-1]
					others = others[:len(others)-1]
				}
			}
		}
		require.Empty(t, steady, "seen at least once")
	}
}

func takesAnyCursor(t *testing.T, f *fixture) {
	for i := range 2000 {
		f.add(t, fmt.Sprint(i), entry.Entry{Kind: entry.String, Expiry: 1, Value: nil})
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		c := rng.Uint64N(1 << cursorBits)
		for steps := 0; c != 0; steps++ {
			require.Less(t, steps, 2000)
			c = f.Scan(c, 10, func([]byte, entry.Entry) {})
		}
	}
}

// TestStorageAgainstModel does the same random operations on a table and on a Go map, ten million
// in all, and compares them after each.
func TestStorageAgainstModel(t *testing.T) {
	for _, c := range []struct {
		storage string
		hash    func([]byte) uint32
		steps   int
	}{
		{"map", goodHash, 300_000},
		{"map", poorHash, 300_000},
		{"dense", goodHash, 6_000_000},
		{"dense", poorHash, 2_000_000},
		{"dense on the heap", goodHash, 2_000_000},
		{"dense on the heap", poorHash, 500_000},
	} {
		t.Run(fmt.Sprint(c.storage, "/", c.steps), func(t *testing.T) {
			t.Parallel()
			playModel(t, newFixture(t, storages[c.storage], c.hash), effort.Steps(c.steps/20, c.steps))
		})
	}
}

// model is the contents of a table, with its keys in a slice for random choice.
type model struct {
	entries map[string]entry.Entry
	keys    []string
}

func (m *model) remove(key string) {
	delete(m.entries, key)
	for i, k := range m.keys {
		if k == key {
			m.keys[i] = m.keys[len(m.keys)-1]
			m.keys = m.keys[:len(m.keys)-1]
			return
		}
	}
}

func playModel(t *testing.T, f *fixture, steps int) {
	m := &model{entries: map[string]entry.Entry{}}
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	bias := 6 // so many of 10 changes of the number of keys are insertions
	pos := uint64(0)
	for step := range steps {
		if step%20_000 == 0 {
			bias = 3 + rng.IntN(6)
		}
		switch op := rng.IntN(20); {
		case op < 8:
			m.insertOrRemove(t, f, rng, rng.IntN(10) < bias)
		case op < 16 && len(m.keys) > 0:
			m.change(t, f, rng)
		case op < 18 && len(m.keys) > 0:
			m.compare(t, f, m.keys[rng.IntN(len(m.keys))])
		case op < 19:
			_, e := f.get(fmt.Sprint("absent", rng.IntN(1000)))
			require.Equal(t, entry.None, e.Kind)
		default:
			m.sweep(t, f, rng, &pos)
		}
		if len(m.entries) != f.Len() {
			require.Equal(t, len(m.entries), f.Len(), "step %d", step)
		}
	}
	seen := f.keys(t, 100)
	require.Len(t, seen, len(m.entries))
	for key := range seen {
		m.compare(t, f, key)
	}
}

func (m *model) compare(t testing.TB, f *fixture, key string) {
	want := m.entries[key]
	r, got := f.get(key)
	if want.Kind != got.Kind || want.Expiry != got.Expiry || !bytes.Equal(want.Value, got.Value) {
		require.Equal(t, want, got)
	}
	k, _ := f.At(r)
	if string(k) != key {
		require.Equal(t, key, string(k))
	}
}

func (m *model) insertOrRemove(t testing.TB, f *fixture, rng *rand.Rand, insert bool) {
	if !insert && len(m.keys) > 0 {
		i := rng.IntN(len(m.keys))
		key := m.keys[i]
		r, _ := f.get(key)
		f.Remove(r)
		delete(m.entries, key)
		m.keys[i] = m.keys[len(m.keys)-1]
		m.keys = m.keys[:len(m.keys)-1]
		return
	}
	key := fmt.Sprintf("%0*d", 1+rng.IntN(40), rng.IntN(1<<30))
	if _, ok := m.entries[key]; ok {
		return
	}
	e := randomEntry(rng)
	f.add(t, key, e)
	m.entries[key] = e
	m.keys = append(m.keys, key)
}

func randomEntry(rng *rand.Rand) entry.Entry {
	n := rng.IntN(60)
	switch rng.IntN(100) {
	case 0:
		n = rng.IntN(20_000)
	case 1, 2, 3:
		n = rng.IntN(3000)
	}
	v := value(n)
	if n > 8 {
		binary.LittleEndian.PutUint64(v, rng.Uint64())
	}
	return entry.Entry{Kind: entry.Kind(1 + rng.IntN(int(entry.Kinds)-1)), Expiry: limit.Instant(rng.Int64N(1 << 40)), Value: v}
}

// change stores something else at an existing key: another entry, another expiry, or the value
// changed in place, cut or extended.
func (m *model) change(t testing.TB, f *fixture, rng *rand.Rand) {
	key := m.keys[rng.IntN(len(m.keys))]
	r, e := f.get(key)
	want := m.entries[key]
	switch rng.IntN(5) {
	case 0:
		want = randomEntry(rng)
		e = want
	case 1:
		want.Expiry = limit.Instant(rng.Int64N(1 << 40))
		e.Expiry = want.Expiry
	case 2:
		want.Value = bytes.Clone(want.Value)
		for range min(3, len(want.Value)) {
			i := rng.IntN(len(want.Value))
			want.Value[i]++
			e.Value[i]++
		}
	case 3:
		n := rng.IntN(len(want.Value) + 1)
		want.Value, e.Value = want.Value[:n:n], e.Value[:n]
	default:
		more := value(rng.IntN(20))
		want.Value = append(bytes.Clone(want.Value), more...)
		e.Value = append(e.Value, more...)
	}
	f.Store(r, e)
	m.entries[key] = want
	m.compare(t, f, key)
}

// sweep removes a few of the entries that are due by a random instant.
func (m *model) sweep(t testing.TB, f *fixture, rng *rand.Rand, pos *uint64) {
	now := limit.Instant(rng.Int64N(1 << 36))
	for budget := rng.IntN(20); budget > 0; {
		r, ok := f.Due(pos, &budget, now)
		if !ok {
			return
		}
		k, e := f.At(r)
		key := string(k)
		require.LessOrEqual(t, e.Expiry, now)
		require.Equal(t, m.entries[key].Expiry, e.Expiry)
		f.Remove(r)
		m.remove(key)
	}
}

// BenchmarkTable measures the storage alone: find and store of random keys, and a pair of insert
// and remove.
func BenchmarkTable(b *testing.B) {
	for _, name := range []string{"dense", "map"} {
		for _, n := range []int{1000, 100_000, 1_000_000} {
			f := newFixture(b, storages[name], goodHash)
			var key [16]byte
			put := func(i int) { binary.LittleEndian.PutUint64(key[:], uint64(i)*0x9e3779b97f4a7c15) }
			for i := range n {
				put(i)
				f.Insert(f.hash(key[:]), key[:], entry.Entry{Kind: entry.Cell, Expiry: 1, Value: nil})
			}
			b.Run(fmt.Sprintf("%s/update/keys=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					put(i * 7919 % n)
					r, k, _, v := f.Find(f.hash(key[:]), key[:])
					f.Store(r, entry.Entry{Kind: k, Expiry: limit.Instant(i), Value: v})
				}
			})
			b.Run(fmt.Sprintf("%s/replace/keys=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					put(i * 7919 % n)
					h := f.hash(key[:])
					r, _, _, _ := f.Find(h, key[:])
					f.Remove(r)
					f.Insert(h, key[:], entry.Entry{Kind: entry.Cell, Expiry: 1, Value: nil})
				}
			})
		}
	}
}
