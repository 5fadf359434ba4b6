package elements_test

import (
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// wrapped starts a server whose stores are wrapped by wrap.
func wrapped(tb testing.TB, wrap func(env.Local) env.Local) (s *inproc.Stepped, newStore func() env.Store) {
	tb.Helper()
	s = inproc.StepWith(tb, func(o *server.Options) {
		o.Env = func(o *env.Options) {
			newStore = o.NewStore
			o.NewStore = func() env.Store { return wrap(newStore().(env.Local)) }
		}
	})
	return s, newStore
}

// lockedReads wraps the reads of collections. It calls during with the shard locked; during has
// to call read, which does the read of the command. It calls behind after the shard is unlocked.
type lockedReads struct {
	env.Local
	during func(read func())
	behind func()
}

func (s lockedReads) ReadHash(db int, key []byte, f func(h *collection.Hash)) (bool, error) {
	defer s.behind()
	return s.Local.ReadHash(db, key, func(h *collection.Hash) { s.during(func() { f(h) }) })
}

func (s lockedReads) ReadSet(db int, key []byte, f func(z *collection.Set)) (bool, error) {
	defer s.behind()
	return s.Local.ReadSet(db, key, func(z *collection.Set) { s.during(func() { f(z) }) })
}

func (s lockedReads) ReadList(db int, key []byte, f func(l *collection.List)) (bool, error) {
	defer s.behind()
	return s.Local.ReadList(db, key, func(l *collection.List) { s.during(func() { f(l) }) })
}

func (s lockedReads) ReadSortedSet(db int, key []byte, f func(z *collection.SortedSet)) (bool, error) {
	defer s.behind()
	return s.Local.ReadSortedSet(db, key, func(z *collection.SortedSet) { s.during(func() { f(z) }) })
}

// readsOfMany returns commands that read many elements of the collections that fillMany makes.
func readsOfMany(n int) map[string][]string {
	fields := []string{"HMGET", "hash"}
	for i := range min(n, 30_000) {
		fields = append(fields, strconv.Itoa(i))
	}
	return map[string][]string{
		"LRANGE":        {"LRANGE", "list", "0", "-1"},
		"SMEMBERS":      {"SMEMBERS", "set"},
		"HGETALL":       {"HGETALL", "hash"},
		"HVALS":         {"HVALS", "hash"},
		"HMGET":         fields,
		"ZRANGE":        {"ZRANGE", "sorted", "0", "-1"},
		"ZREVRANGE":     {"ZREVRANGE", "sorted", "0", "-1", "WITHSCORES"},
		"HSCAN":         {"HSCAN", "hash", "0"},
		"SSCAN":         {"SSCAN", "set", "0"},
		"SSCANMATCH":    {"SSCAN", "set", "0", "MATCH", "?*"},
		"ZSCAN":         {"ZSCAN", "sorted", "0"},
		"SRANDMEMBER":   {"SRANDMEMBER", "set", strconv.Itoa(n)},
		"SRANDREPEATED": {"SRANDMEMBER", "set", strconv.Itoa(-n)},
	}
}

// fillMany makes collections of n elements of size bytes.
func fillMany(tb testing.TB, c *inproc.Client, n, size int) {
	tb.Helper()
	const each = 500
	value := strings.Repeat("x", size)
	for at := 0; at < n; at += each {
		list, set, hash, sorted := []string{"RPUSH", "list"}, []string{"SADD", "set"}, []string{"HSET", "hash"}, []string{"ZADD", "sorted"}
		for i := range each {
			number := strconv.Itoa(at + i)
			v := number + value[len(number):]
			list, set, hash, sorted = append(list, v), append(set, v), append(hash, number, v), append(sorted, number+".5", v)
		}
		for _, words := range [][]string{list, set, hash, sorted} {
			require.Equal(tb, byte(':'), c.Do(words...)[0])
		}
	}
}

// TestLargeCollectionsAreNotCopiedWhileLocked: a command that reads much of a collection
// allocates almost nothing while its shard is locked.
func TestLargeCollectionsAreNotCopiedWhileLocked(t *testing.T) {
	const n, size = 5000, 600
	var mu sync.Mutex
	most := uint64(0)
	s, _ := wrapped(t, func(st env.Local) env.Local {
		return lockedReads{st, func(read func()) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			read()
			runtime.ReadMemStats(&after)
			mu.Lock()
			defer mu.Unlock()
			most = max(most, after.TotalAlloc-before.TotalAlloc)
		}, func() {}}
	})
	c := s.Dial()
	fillMany(t, c, n, size)
	for name, words := range readsOfMany(n) {
		mu.Lock()
		most = 0
		mu.Unlock()
		require.Greater(t, len(c.Do(words...)), n*size, name)
		mu.Lock()
		require.Less(t, most, uint64(n*size/4), name)
		mu.Unlock()
	}
}

// TestLargeRepliesAreOfOneState: a reply has the elements as they were under the lock, however
// much the collection changes between the unlock and the copying.
func TestLargeRepliesAreOfOneState(t *testing.T) {
	effort.Alone(t)
	const n, size = 2000, 600
	var writer env.Local
	var generation atomic.Int64 // of all elements
	letter := func(generation int64) string { return string(rune('a' + generation%26)) }
	value := func(i int) []byte {
		number := fmt.Sprintf("%06d", i)
		return []byte(number + strings.Repeat(letter(generation.Load()), size-len(number)))
	}
	change := func() {
		old := make([][]byte, n)
		for i := range old {
			old[i] = value(i)
		}
		generation.Add(1)
		require.NoError(t, writer.WriteHash(0, []byte("hash"), func(h *collection.Hash) (err error) {
			for i := range n {
				_, err = h.Set([]byte(strconv.Itoa(i)), value(i))
			}
			return err
		}))
		require.NoError(t, writer.WriteList(0, []byte("list"), func(l *collection.List) (err error) {
			for l.Len() > n {
				l.PopFront()
			}
			for i := range n {
				if !l.Set(i, value(i)) {
					err = l.PushBack(value(i))
				}
			}
			return err
		}))
		require.NoError(t, writer.WriteSet(0, []byte("set"), func(s *collection.Set) (err error) {
			for i := range n {
				s.Remove(old[i])
				_, err = s.Add(value(i))
			}
			return err
		}))
		require.NoError(t, writer.WriteSortedSet(0, []byte("sorted"), func(z *collection.SortedSet) (err error) {
			for i := range n {
				z.Remove(old[i])
				_, err = z.Set(value(i), float64(i))
			}
			return err
		}))
	}
	s, newStore := wrapped(t, func(st env.Local) env.Local {
		return lockedReads{st, func(read func()) { read() }, change}
	})
	writer = newStore().(env.Local)
	change()
	c := s.Dial()
	for name, words := range readsOfMany(n) {
		t.Run(name, func(t *testing.T) {
			for _, proto := range []string{"2", "3"} {
				c.Do("HELLO", proto)
				reply := c.Do(words...)
				states := map[string]int{}
				for line := range strings.SplitSeq(reply, "\r\n") {
					if len(line) == size {
						states[line[6:]]++
					}
				}
				last := strings.Repeat(letter(generation.Load()-1), size-6) // the generation after the unlock differs
				require.Equal(t, map[string]int{last: n}, states)
			}
		})
	}
}

// TestNoReaderSeesHalfOfAWrite: each write replaces all elements, by a command or a transaction,
// and concurrent readers see only elements of a single write.
func TestNoReaderSeesHalfOfAWrite(t *testing.T) {
	const n, size, rounds = 1000, 600, 12
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		write := func(c *inproc.Client, letter string) {
			value := strings.Repeat(letter, size)
			hash, list := []string{"HSET", "hash"}, []string{"RPUSH", "list"}
			for i := range n {
				hash, list = append(hash, strconv.Itoa(i), value), append(list, value)
			}
			require.Equal(t, byte(':'), c.Do(hash...)[0])
			c.Send("MULTI\r\nDEL list\r\n" + string(inproc.Encode(nil, list...)) + "EXEC\r\n")
			for range 3 {
				c.Reply()
			}
			require.Contains(t, c.Reply(), ":1000\r\n")
		}
		write(s.Dial(), "a")
		var all sync.WaitGroup
		for i := range 2 {
			c := s.Dial()
			all.Go(func() {
				for round := range rounds {
					write(c, string(rune('b'+2*round%24+i)))
				}
			})
		}
		for range 3 {
			c := s.Dial()
			all.Go(func() {
				for round := range rounds {
					words := [][]string{{"HVALS", "hash"}, {"LRANGE", "list", "0", "-1"}}[round%2]
					values := strings.Split(c.Do(words...), "\r\n")
					require.Len(t, values, 2*n+2)
					for i := 4; i < len(values); i += 2 {
						require.Equal(t, values[2], values[i])
					}
				}
			})
		}
		all.Wait()
	})
}

// BenchmarkLockOfLargeRead measures how long a shard is locked for a reply of 60 MB.
func BenchmarkLockOfLargeRead(b *testing.B) {
	const n, size = 100_000, 600
	var mu sync.Mutex
	var longest time.Duration // the longest of all requests
	s, _ := wrapped(b, func(st env.Local) env.Local {
		return lockedReads{st, func(read func()) {
			began := time.Now()
			read()
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, time.Since(began))
		}, func() {}}
	})
	fillMany(b, s.Dial(), n, size)
	reader, _ := s.Open(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	for name, words := range readsOfMany(n) {
		request := inproc.Encode(nil, words...)
		b.Run(name, func(b *testing.B) {
			var sum, least time.Duration
			for b.Loop() {
				_, err := reader.Send(request)
				require.NoError(b, err)
				mu.Lock()
				sum += longest
				if least == 0 || longest < least {
					least = longest
				}
				longest = 0
				mu.Unlock()
			}
			b.ReportMetric(sum.Seconds()*1000/float64(b.N), "ms-locked/op")
			b.ReportMetric(least.Seconds()*1000, "ms-locked-least")
		})
	}
}
