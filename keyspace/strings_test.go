package keyspace_test

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

var forever = keyspace.SetOptions{Expiry: entry.NoExpiry}

func setString(t testing.TB, v *keyspace.Handle, key, value string) {
	t.Helper()
	done, err := v.SetString(0, []byte(key), []byte(value), forever)
	require.NoError(t, err)
	require.True(t, done)
}

func getString(t testing.TB, v *keyspace.Handle, key string) string {
	t.Helper()
	value, found, err := v.AppendString(nil, 0, []byte(key))
	require.NoError(t, err)
	if !found {
		return "(none)"
	}
	return string(value)
}

// modelString is the value of a key in the model.
type modelString struct {
	value  string
	expiry limit.Instant
}

// stringModel applies the same operations to a keyspace and a map.
type stringModel struct {
	v     *keyspace.Handle
	clock interface{ Advance(time.Duration) }
	want  map[string]modelString
}

func (m *stringModel) live(key string) (e modelString, ok bool) {
	e, ok = m.want[key]
	if ok && e.expiry <= m.v.Now() {
		delete(m.want, key)
		return modelString{expiry: entry.NoExpiry}, false
	}
	if !ok {
		e.expiry = entry.NoExpiry
	}
	return e, ok
}

func (m *stringModel) hold(key, value string, until limit.Instant) {
	if until <= m.v.Now() {
		delete(m.want, key)
		return
	}
	m.want[key] = modelString{value, until}
}

func (m *stringModel) set(t *rapid.T, key, value string) {
	o := keyspace.SetOptions{
		Expiry:   rapid.SampledFrom([]limit.Instant{entry.NoExpiry, m.v.Now() + 5, m.v.Now() + 50, m.v.Now(), 0}).Draw(t, "expiry"),
		KeepTTL:  rapid.Bool().Draw(t, "keepttl"),
		IfExists: rapid.Bool().Draw(t, "xx"),
		IfAbsent: rapid.Bool().Draw(t, "nx"),
	}
	was, found := m.live(key)
	old, had, done, err := m.v.SwapString(nil, 0, []byte(key), []byte(value), o)
	require.NoError(t, err)
	require.Equal(t, found, had)
	require.Equal(t, was.value, string(old))
	require.Equal(t, !(o.IfAbsent && found || o.IfExists && !found), done)
	if !done {
		return
	}
	until := o.Expiry
	if o.KeepTTL {
		until = was.expiry
	}
	m.hold(key, value, until)
}

func (m *stringModel) add(t *rapid.T, key string, by int64) {
	was, found := m.live(key)
	n, isNumber := int64(0), true
	if found {
		var err error
		n, err = strconv.ParseInt(was.value, 10, 64)
		isNumber = err == nil && strconv.FormatInt(n, 10) == was.value
	}
	got, err := m.v.AddInt(0, []byte(key), by)
	sum := new(big.Int).Add(big.NewInt(n), big.NewInt(by))
	switch {
	case !isNumber:
		require.ErrorIs(t, err, limit.ErrNotInteger)
	case !sum.IsInt64():
		require.ErrorIs(t, err, limit.ErrSumOverflow)
	default:
		require.NoError(t, err)
		require.Equal(t, sum.Int64(), got)
		m.hold(key, sum.String(), was.expiry)
	}
}

func (m *stringModel) extend(t *rapid.T, key, more string, most int) {
	was, found := m.live(key)
	n, err := m.v.ExtendString(0, []byte(key), []byte(more), most)
	if found && len(was.value)+len(more) > most {
		require.ErrorIs(t, err, limit.ErrTooLong)
		return
	}
	require.NoError(t, err)
	require.Equal(t, len(was.value)+len(more), n)
	m.hold(key, was.value+more, was.expiry)
}

func (m *stringModel) read(t *rapid.T, key string) {
	was, found := m.live(key)
	var value []byte
	var ok bool
	var err error
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		value, ok, err = m.v.TakeString(nil, 0, []byte(key))
		delete(m.want, key)
	case 1:
		until := rapid.SampledFrom([]limit.Instant{entry.NoExpiry, m.v.Now() + 20, m.v.Now()}).Draw(t, "until")
		value, ok, err = m.v.ReadUntil(nil, 0, []byte(key), until)
		if found {
			m.hold(key, was.value, until)
		}
	case 2:
		value, ok, err = m.v.AppendString(nil, 0, []byte(key))
	}
	require.NoError(t, err)
	require.Equal(t, found, ok)
	require.Equal(t, was.value, string(value))
}

func (m *stringModel) several(t *rapid.T, keys []string, values []string) {
	pairs, bytes := [][]byte{}, [][]byte{}
	anyFound := false
	for i, key := range keys {
		pairs = append(pairs, []byte(key), []byte(values[i]))
		bytes = append(bytes, []byte(key))
		_, found := m.live(key)
		anyFound = anyFound || found
	}
	nx := rapid.Bool().Draw(t, "nx")
	done, err := m.v.SetStrings(0, pairs, nx)
	require.NoError(t, err)
	require.Equal(t, !nx || !anyFound, done)
	if done {
		for i, key := range keys {
			m.hold(key, values[i], entry.NoExpiry)
		}
	}
	i := 0
	m.v.EachString(0, bytes, func(value []byte, found bool) bool {
		want, ok := m.live(keys[i])
		require.Equal(t, ok, found)
		require.Equal(t, want.value, string(value))
		i++
		return true
	})
}

// TestStringsAgainstAMap: every method has the same result on a keyspace as on a map.
func TestStringsAgainstAMap(t *testing.T) {
	_, v, clock := open(t, keyspace.Options{Shards: 2})
	rapid.Check(t, func(t *rapid.T) {
		v.FlushAll()
		m := &stringModel{v: v, clock: clock, want: map[string]modelString{}}
		keys := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		values := rapid.OneOf(
			rapid.SampledFrom([]string{"", "0", "-0", "01", "+1", "-1", " 1", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1.5", strings.Repeat("x", 5000)}),
			rapid.StringN(0, 30, 200))
		numbers := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{1, -1, 0, math.MaxInt64, math.MinInt64}))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := keys.Draw(t, "key")
			switch rapid.IntRange(0, 5).Draw(t, "do") {
			case 0:
				m.set(t, key, values.Draw(t, "value"))
			case 1:
				m.add(t, key, numbers.Draw(t, "by"))
			case 2:
				m.extend(t, key, values.Draw(t, "more"), rapid.IntRange(0, 8000).Draw(t, "most"))
			case 3:
				m.read(t, key)
			case 4:
				n := rapid.IntRange(1, 4).Draw(t, "n")
				m.several(t, rapid.SliceOfN(keys, n, n).Draw(t, "keys"), rapid.SliceOfN(values, n, n).Draw(t, "values"))
			case 5:
				clock.Advance(time.Duration(rapid.IntRange(0, 30).Draw(t, "ns")))
				v.Refresh()
			}
		}
	})
}

// A cell is a string of its TAT, from which CL.THROTTLE continues, whatever command wrote it.
func TestCellsAreStrings(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	k := []byte("k")
	_, err := asks.Throttle(v, 0, k, quota(t), 1)
	require.NoError(t, err)
	tat := int64(t0) + 2e9
	require.Equal(t, strconv.FormatInt(tat, 10), getString(t, v, "k"))
	sum, err := v.AddInt(0, k, 3)
	require.NoError(t, err)
	require.Equal(t, tat+3, sum)
	at, has, _ := v.Expiry(0, k)
	require.True(t, has)
	require.Equal(t, limit.Instant(tat), at, "what a counter holds does not change when it ends")
	require.Equal(t, entry.String, v.Kind(0, k))
	setString(t, v, "k", strconv.FormatInt(int64(t0)+4e9, 10))
	d, err := asks.Throttle(v, 0, k, quota(t), 1)
	require.NoError(t, err)
	require.Equal(t, 6*time.Second, d.ResetAfter)
	n, err := v.ExtendString(0, k, []byte("0"), 100)
	require.NoError(t, err)
	require.Equal(t, 20, n)
	_, err = v.AddInt(0, k, 1)
	require.ErrorIs(t, err, limit.ErrNotInteger)
}

// Methods for strings on keys of other kinds.
func TestStringsOfTheWrongKind(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	k := []byte("k")
	_, err := asks.Allow(v, 0, k, window(1))
	require.NoError(t, err)
	before, _ := v.Load(0, k)
	for name, do := range map[string]func() error{
		"swap":   func() error { _, _, _, err := v.SwapString(nil, 0, k, k, forever); return err },
		"add":    func() error { _, err := v.AddInt(0, k, 1); return err },
		"extend": func() error { _, err := v.ExtendString(0, k, k, 100); return err },
		"take":   func() error { _, _, err := v.TakeString(nil, 0, k); return err },
		"read":   func() error { _, _, err := v.ReadUntil(nil, 0, k, 0); return err },
		"update": func() error { return v.UpdateString(0, k, nil) },
	} {
		require.ErrorIs(t, do(), limit.ErrWrongType, name)
	}
	v.EachString(0, [][]byte{k}, func(_ []byte, found bool) bool {
		require.False(t, found)
		return true
	})
	after, _ := v.Load(0, k)
	require.Equal(t, before, after)

	w := newWaiting()
	v.Enqueue(0, k, &w.Waiter)
	setString(t, v, "k", "v")
	require.Equal(t, 1, w.woken, "the limiter that it waited for is gone")
}

// When memory is full, new strings and longer ones are refused; counters go on.
func TestStringsWhenMemoryIsFull(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{})
	setString(t, v, "s", "0123456789")
	setString(t, v, "n", "9")
	ks.SetMaxMemory(1)
	long := []byte(strings.Repeat("x", 30))
	_, err := v.SetString(0, []byte("new"), long[:1], forever)
	require.ErrorIs(t, err, limit.ErrFull)
	_, err = v.SetString(0, []byte("s"), long, forever)
	require.ErrorIs(t, err, limit.ErrFull)
	_, err = v.ExtendString(0, []byte("s"), long, 100)
	require.ErrorIs(t, err, limit.ErrFull)
	_, err = v.AddInt(0, []byte("new"), 1)
	require.ErrorIs(t, err, limit.ErrFull)
	_, err = v.SetStrings(0, [][]byte{[]byte("s"), long[:1], []byte("new"), long[:1]}, false)
	require.ErrorIs(t, err, limit.ErrFull)
	require.Equal(t, "0123456789", getString(t, v, "s"), "all or none")
	sum, err := v.AddInt(0, []byte("n"), 1)
	require.NoError(t, err)
	require.Equal(t, int64(10), sum)
	setString(t, v, "s", "short")
	_, found, err := v.TakeString(nil, 0, []byte("s"))
	require.NoError(t, err)
	require.True(t, found)
}

// Every change is recorded, none happens if it cannot be recorded, and a change of several keys is
// one record.
func TestStringsInTheJournal(t *testing.T) {
	ks, v, j, clock := journalled(t)
	setString(t, v, "s", "v")
	_, err := v.AddInt(0, []byte("n"), 7)
	require.NoError(t, err)
	_, err = v.ExtendString(0, []byte("s"), []byte("w"), 10)
	require.NoError(t, err)
	_, _, err = v.ReadUntil(nil, 0, []byte("n"), v.Now()+100)
	require.NoError(t, err)
	_, _, err = v.TakeString(nil, 0, []byte("s"))
	require.NoError(t, err)
	require.Len(t, j.records, 5)
	_, err = v.SetStrings(0, [][]byte{[]byte("a"), []byte("1"), []byte("b"), []byte("2")}, false)
	require.NoError(t, err)
	require.Len(t, j.records, 6)
	fresh := keyspace.New(keyspace.Options{Clock: clock, Databases: 2})
	defer fresh.Close()
	j.replay(t, fresh, 0)
	require.Equal(t, all(ks), all(fresh))

	j.refuses = true
	before := all(ks)
	for name, do := range map[string]func() error{
		"set":    func() error { _, err := v.SetString(0, []byte("a"), nil, forever); return err },
		"add":    func() error { _, err := v.AddInt(0, []byte("n"), 1); return err },
		"extend": func() error { _, err := v.ExtendString(0, []byte("a"), []byte("x"), 10); return err },
		"take":   func() error { _, _, err := v.TakeString(nil, 0, []byte("a")); return err },
		"read":   func() error { _, _, err := v.ReadUntil(nil, 0, []byte("n"), v.Now()+5); return err },
		"pairs":  func() error { _, err := v.SetStrings(0, [][]byte{[]byte("a"), nil}, false); return err },
	} {
		require.ErrorIs(t, do(), limit.ErrNotKept, name)
	}
	require.Equal(t, before, all(ks))
}

// A watched string is dirty after a change, and not after a write that changed nothing.
func TestStringsAreWatched(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	setString(t, v, "k", "5")
	for name, row := range map[string]struct {
		do    func()
		trips bool
	}{
		"a read": {func() { getString(t, v, "k") }, false},
		"nx":     {func() { _, _ = v.SetString(0, []byte("k"), nil, keyspace.SetOptions{IfAbsent: true}) }, false},
		"nil": {func() {
			_ = v.UpdateString(0, []byte("k"), func([]byte, bool, limit.Instant) ([]byte, limit.Instant, error) { return nil, 0, nil })
		}, false},
		"the same": {func() { setString(t, v, "k", "5") }, true},
		"a sum":    {func() { _, _ = v.AddInt(0, []byte("k"), 0) }, true},
		"several":  {func() { _, _ = v.SetStrings(0, [][]byte{[]byte("j"), []byte("1"), []byte("k"), []byte("5")}, false) }, true},
	} {
		w := &keyspace.Watcher{}
		v.Watch(w, 0, []byte("k"))
		row.do()
		require.Equal(t, row.trips, v.Dirty(w), name)
		v.Unwatch(w)
	}
}

// Readers of several keys see a change of all of them at one instant.
func TestSeveralStringsAtOnce(t *testing.T) {
	ks, _, _ := open(t, keyspace.Options{})
	keys := [][]byte{key(1), key(2), key(3), key(4)}
	var running sync.WaitGroup
	for g := range 2 {
		running.Go(func() {
			v := ks.NewHandle()
			defer v.Close()
			for i := range 2000 {
				value := strconv.AppendInt(nil, int64(2*i+g), 10)
				pairs := [][]byte{}
				for j := range keys {
					pairs = append(pairs, keys[(j+g)%len(keys)], value)
				}
				if _, err := v.SetStrings(0, pairs, false); err != nil {
					t.Error(err)
				}
			}
		})
		running.Go(func() {
			v := ks.NewHandle()
			defer v.Close()
			for range 2000 {
				seen := map[string]bool{}
				v.EachString(0, keys, func(value []byte, _ bool) bool {
					seen[string(value)] = true
					return true
				})
				if len(seen) != 1 {
					t.Errorf("values of several instants: %v", seen)
					return
				}
			}
		})
	}
	running.Wait()
}
