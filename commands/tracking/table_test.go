package tracking

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cellserver/cellserver/internal/effort"

	"github.com/stretchr/testify/require"
)

// TestReadTableAgreesWithAMapOfSets: after any adds and takes, the table has the same readers and
// counts as a map of sets, and counts no memory when it is empty. It also holds if all keys have
// one of three hashes.
func TestReadTableAgreesWithAMapOfSets(t *testing.T) {
	effort.Alone(t)
	t.Run("hashes", func(t *testing.T) { agreesWithAMapOfSets(t, nil) })
	t.Run("three hashes", func(t *testing.T) {
		agreesWithAMapOfSets(t, func(key []byte) uint64 { return uint64(key[len(key)-1]) % 3 * tableStripes })
	})
}

func agreesWithAMapOfSets(t *testing.T, hash func(key []byte) uint64) {
	var table readTable
	table.init(func(int64) bool { return true })
	if hash != nil {
		table.hash = hash
	}
	model := map[string]map[int64]bool{}
	random := rand.New(rand.NewPCG(1, 2))
	items := 0
	for step := range 200_000 {
		key := strings.Repeat("k", random.IntN(2)*step%1100) + fmt.Sprint(random.IntN(40))
		switch random.IntN(200) {
		case 1:
			if random.IntN(10) > 0 {
				continue
			}
			odd := random.Int64N(2)
			table.sweep(func(id int64) bool { return id%2 == odd })
			for key, ids := range model {
				maps.DeleteFunc(ids, func(id int64, _ bool) bool { return id%2 != odd })
				if len(ids) == 0 {
					delete(model, key)
				}
			}
			items = 0
			for _, ids := range model {
				items += len(ids)
			}
		case 0, 2, 3:
			r := table.take([]byte(key))
			require.Equal(t, model[key] == nil, r == nil)
			if r == nil {
				continue
			}
			for _, id := range r.ids {
				require.True(t, model[key][id])
			}
			require.Equal(t, len(model[key]), r.len())
			items -= r.len()
			delete(model, key)
			table.forget(r)
		default:
			id := 1 + random.Int64N(300)
			require.Equal(t, !model[key][id], table.add([]byte(key), id, 1))
			if model[key] == nil {
				model[key] = map[int64]bool{}
			}
			if !model[key][id] {
				items++
			}
			model[key][id] = true
		}
		require.EqualValues(t, len(model), table.keys.Load())
		require.EqualValues(t, items, table.items.Load())
	}
	for range model {
		table.forget(table.draw(0))
	}
	require.Nil(t, table.draw(0))
	require.Zero(t, table.memory.Load())
	table.add([]byte("k"), 1, 1)
	table.clear()
	require.Zero(t, table.memory.Load()+table.keys.Load()+table.items.Load())
}

// TestReadTableHasNoPointerForEachKey: an entry is not a heap object of its own, so that the
// garbage collector does not visit it, and a read of a new key makes no allocation for its entry.
func TestReadTableHasNoPointerForEachKey(t *testing.T) {
	if effort.RaceDetector {
		t.Skip("the race detector allocates")
	}
	const keys = 100_000
	before := liveObjects()
	table := fullTable(keys)
	require.Less(t, liveObjects()-before, keys/8)
	require.EqualValues(t, keys, table.keys.Load())
}

// liveObjects returns the number of heap objects in use.
func liveObjects() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapObjects)
}

// TestReadTableForgetsClientsThatAreGone: the entry of a key that never changes does not
// accumulate disconnected clients.
func TestReadTableForgetsClientsThatAreGone(t *testing.T) {
	var table readTable
	newest := int64(0)
	table.init(func(id int64) bool { return id > newest-10 })
	for range 100_000 {
		newest++
		table.add([]byte("k"), newest, 1)
	}
	require.Less(t, table.items.Load(), int64(200))
	require.Less(t, table.memory.Load(), int64(20_000))
}

// TestPrefixTreeAgreesWithAList: a changed key becomes pending for exactly the clients that
// listen to one of its prefixes.
func TestPrefixTreeAgreesWithAList(t *testing.T) {
	var tree prefixTree
	random := rand.New(rand.NewPCG(3, 4))
	word := func(most int) string {
		var b strings.Builder
		for range random.IntN(most) {
			b.WriteByte("abc"[random.IntN(3)])
		}
		return b.String()
	}
	model := map[string]map[int64]bool{}
	for mark := range uint64(20_000) {
		prefix, id := word(5), int64(1+random.IntN(3))
		switch {
		case random.IntN(2) == 0:
			tree.join(prefix, id)
			if model[prefix] == nil {
				model[prefix] = map[int64]bool{}
			}
			model[prefix][id] = true
		default:
			tree.leave(prefix, id)
			if delete(model[prefix], id); len(model[prefix]) == 0 {
				delete(model, prefix)
			}
		}
		require.EqualValues(t, len(model), tree.count.Load())
		key := word(8)
		groups, memory := tree.changed(nil, []byte(key), 7, 1+mark)
		var got, want []string
		for _, g := range groups {
			pending, members := g.take()
			require.Equal(t, map[string]int64{key: 7}, pending)
			require.Len(t, members, len(model[g.prefix]))
			got = append(got, g.prefix)
		}
		for prefix := range model {
			if strings.HasPrefix(key, prefix) {
				want = append(want, prefix)
			}
		}
		slices.Sort(want)
		require.Equal(t, want, got, "of %q", key)
		require.EqualValues(t, len(want)*(len(key)+pendingCost), memory)
	}
	for prefix, ids := range model {
		for id := range ids {
			tree.leave(prefix, id)
		}
	}
	require.Empty(t, tree.root.next)
}

// TestPendingKeyOfTwoWritersIsNobodysOwn: a key that two clients have changed is sent to both,
// also with NOLOOP.
func TestPendingKeyOfTwoWritersIsNobodysOwn(t *testing.T) {
	var tree prefixTree
	tree.join("", 1)
	groups, _ := tree.changed(nil, []byte("k"), 1, 1)
	again, memory := tree.changed(nil, []byte("k"), 2, 1)
	require.Empty(t, again)
	require.Zero(t, memory)
	other, _ := tree.changed(nil, []byte("k"), 2, 2)
	require.Equal(t, groups, other, "another writer looks that it is told before its reply leaves")
	pending, _ := groups[0].take()
	require.Equal(t, map[string]int64{"k": 0}, pending)
}

// TestParseTracking covers what the scripts that also run against Redis do not.
func TestParseTracking(t *testing.T) {
	exists := func(id int64) bool { return id == 7 }
	words := func(s string) (args [][]byte) {
		for _, w := range strings.Fields(s) {
			args = append(args, []byte(w))
		}
		return args
	}
	call, err := parseTracking(words("on redirect 7 bcast prefix a prefix b noloop"), exists)
	require.Empty(t, err)
	require.Equal(t, trackingCall{
		tracking: tracking{noLoop: true, broadcast: true, redirect: 7}, on: true, prefixes: []string{"a", "b"},
	}, call)
	var many, had []string
	for i := range 2000 {
		many = append(many, fmt.Sprintf("%05d", i))
	}
	require.Empty(t, overlap(many, nil))
	require.Contains(t, overlap(append(many, "000011"), nil), "'000011' overlaps with another provided prefix '00001'")
	had = []string{"", "x", "y"}
	require.Empty(t, overlapOfMany(nil, had))
	require.Contains(t, overlapOfMany([]string{"xa"}, had), "'xa' overlaps with an existing prefix 'x'")
	require.Contains(t, overlapOfMany([]string{"z"}, had), "'z' overlaps with an existing prefix ''", "neighbours do not overlap")
}

// TestReadTableSweepLeavesWhoStays: sweep removes only the clients that are not kept and the keys
// without another reader, and the counts fit what is left.
func TestReadTableSweepLeavesWhoStays(t *testing.T) {
	var table readTable
	table.init(func(int64) bool { return true })
	for i := range 1000 {
		key := []byte(fmt.Sprint(i))
		for id := range int64(1 + i%40) {
			table.add(key, 1+id, 1)
		}
	}
	table.sweep(func(id int64) bool { return id == 3 })
	require.Equal(t, table.keys.Load(), table.items.Load())
	require.EqualValues(t, 950, table.keys.Load(), "those with three readers or more")
	for i := range 1000 {
		r := table.take([]byte(fmt.Sprint(i)))
		require.Equal(t, i%40 < 2, r == nil)
		if r != nil {
			require.Equal(t, []int64{3}, r.ids)
			table.forget(r)
		}
	}
	require.Zero(t, table.memory.Load()+table.keys.Load()+table.items.Load())
}

// TestReadTableIsClearedWithoutAWalk: clear visits no entry, since all shards are locked
// meanwhile, and the counts are right after any operations before it.
func TestReadTableIsClearedWithoutAWalk(t *testing.T) {
	var table readTable
	table.init(func(id int64) bool { return id%3 != 0 })
	fill := func() {
		for i := range 500 {
			for id := range int64(1 + i%90) {
				table.add([]byte(fmt.Sprint(i)), 1+id, 1)
			}
		}
	}
	fill()
	taken := table.take([]byte("100"))
	table.draw(0)
	table.sweep(func(id int64) bool { return id != 7 })
	fill()
	for i := range table.stripes {
		s := &table.stripes[i]
		items, cost := 0, int64(0)
		s.records.backward(func(at place) {
			r := s.records.at(at)
			items, cost = items+r.clients(), cost+r.cost()
		})
		s.records.vectors, s.records.long = nil, nil // a walk over the entries would panic
		require.EqualValues(t, items, s.items)
		require.Equal(t, cost, s.cost)
	}
	held := table.memory.Load()
	require.Positive(t, held)
	table.clear()
	require.Zero(t, table.keys.Load()+table.items.Load())
	require.Less(t, table.memory.Load(), held)
	fill()
	require.EqualValues(t, 500, table.keys.Load())
	require.NotNil(t, taken)
}
