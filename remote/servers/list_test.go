package servers_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/records"
	"github.com/cellserver/cellserver/remote/servers"
)

// double is an engine in memory by the clock of a bubble.
type double struct {
	mu    sync.Mutex
	m     *remotedouble.Records // guarded by mu
	away  bool                  // guarded by mu
	beats int                   // guarded by mu
	other func() any            // guarded by mu: answers in place of the model, if it is not nil
}

// answer has f answer in place of the model. nil ends that.
func (d *double) answer(f func() any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.other = f
}

func newDouble() *double { return &double{m: remotedouble.NewRecords()} }

func (d *double) Eval(_ context.Context, script string, keys, args []string) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beats++
	if d.away {
		return nil, errors.New("away")
	}
	if d.other != nil {
		return d.other(), nil
	}
	d.m.Now = time.Now().UnixNano()
	return d.m.Run(script, keys, args), nil
}

func (d *double) setAway(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

// put writes a value as another program would.
func (d *double) put(id, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now().UnixMilli()
	if d.m.Hashes[servers.Key] == nil {
		d.m.Hashes[servers.Key] = map[string]string{}
	}
	d.m.Hashes[servers.Key][id] = fmt.Sprintf("%d %d %s", now, now+5000, text)
}

// node is a list with the record of its server.
type node struct {
	*servers.List
	number atomic.Uint64 // of the version
	stop   func()
}

func version(n uint64) records.Version { return records.Version{Number: n, ID: n} }

func start(t *testing.T, d *double, id string) *node {
	n := &node{}
	n.number.Store(1)
	n.List = servers.New(servers.Options{Engine: d, ID: id, Own: func() servers.Record {
		return servers.Record{Release: "1", Address: "at-" + id, Version: version(n.number.Load()), Level: 1, Tzdata: "2025b", Started: limit.Instant(time.Second)}
	}})
	ctx, cancel := context.WithCancel(context.Background())
	var under sync.WaitGroup
	under.Go(func() { n.Run(ctx) })
	n.stop = func() {
		cancel()
		under.Wait()
	}
	t.Cleanup(n.stop)
	return n
}

// names returns the names of the servers that n has seen.
func (n *node) names() string {
	var all []string
	for _, s := range n.Seen() {
		all = append(all, s.Name())
	}
	return strings.Join(all, " ")
}

// settle lets the time of one period pass.
func settle() {
	time.Sleep(servers.Period)
	synctest.Wait()
}

func TestServersSeeEachOther(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := newDouble()
		a := start(t, d, "a")
		require.Nil(t, a.Seen())
		synctest.Wait()
		require.Equal(t, "at-a", a.names())
		b, c := start(t, d, "b"), start(t, d, "c")
		settle()
		require.Equal(t, "at-a at-b at-c", a.names())
		is := b.Seen()[0]
		require.Equal(t, "a", is.ID)
		require.Equal(t, servers.Record{Release: "1", Address: "at-a", Version: version(1), Level: 1, Tzdata: "2025b", Started: limit.Instant(time.Second)}, is.Record)
		require.Equal(t, time.Minute, is.Age(is.Beat.Add(time.Minute)))
		require.Zero(t, is.Age(is.Beat-1))

		c.stop()
		settle()
		require.Equal(t, "at-a at-b", a.names(), "a server that stops removes its record")
		d.put("dead", `{"address":"at-dead","level":1}`)
		d.put("odd", "what\x00")
		settle()
		require.Equal(t, "at-a at-b at-dead odd", a.names())
		require.True(t, a.Seen()[3].Unreadable)
		time.Sleep(servers.Live)
		settle()
		require.Equal(t, "at-a at-b", a.names(), "others expire")

		d.setAway(true)
		settle()
		require.Equal(t, "away", a.Fault())
		require.Equal(t, "at-a at-b", a.names(), "those seen at last")
		require.Equal(t, 2, a.Count())
		b.stop()
		time.Sleep(2 * servers.Live)
		require.Equal(t, 2, a.Count())
		d.setAway(false)
		settle()
		require.Empty(t, a.Fault())
		require.Equal(t, "at-a", a.names())
		require.Equal(t, 2, a.Count(), "the other one may come back")
		time.Sleep(servers.Live)
		settle()
		require.Equal(t, 1, a.Count())
	})
}

func TestChangeOfARecordIsWrittenAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := newDouble()
		a := start(t, d, "a")
		settle()
		before := d.beats
		for range 100 {
			a.number.Add(1)
			a.Changed()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, version(101), a.Seen()[0].Version)
		require.LessOrEqual(t, d.beats-before, 4, "one in 50 ms at most")
	})
}

func TestAwait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := newDouble()
		a, b, c := start(t, d, "a"), start(t, d, "b"), start(t, d, "c")
		settle()
		await := func(v records.Version) (names string, took time.Duration, err error) {
			began := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			behind, err := a.Await(ctx, v)
			for _, s := range behind {
				names += s.Name() + " "
			}
			return names, time.Since(began), err
		}
		names, took, err := await(version(1))
		require.NoError(t, err)
		require.Empty(t, names)
		require.LessOrEqual(t, took, 50*time.Millisecond)

		go func() {
			time.Sleep(300 * time.Millisecond)
			b.number.Store(3)
			b.Changed()
			time.Sleep(300 * time.Millisecond)
			c.number.Store(2)
			c.Changed()
		}()
		names, took, err = await(version(2))
		require.NoError(t, err)
		require.Empty(t, names)
		require.InDelta(t, 0.65, took.Seconds(), 0.06)

		names, took, err = await(records.Version{Number: 3, ID: 99})
		require.NoError(t, err)
		require.Equal(t, "at-b at-c ", names, "another version with that number is another one")
		require.Equal(t, 3*time.Second, took)
		d.put("odd", "what")
		names, _, err = await(version(1))
		require.NoError(t, err)
		require.Equal(t, "odd ", names)
		d.setAway(true)
		names, _, err = await(version(3))
		require.EqualError(t, err, "away")
		require.Equal(t, "at-c odd ", names)
	})
}

func TestTooManyServers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := newDouble()
		for i := range servers.MaxServers - 1 {
			d.put(strconv.Itoa(i), "x")
		}
		a := start(t, d, "a")
		synctest.Wait()
		require.Len(t, a.Seen(), servers.MaxServers)
		b := start(t, d, "b")
		synctest.Wait()
		require.Equal(t, servers.ErrFull.Error(), b.Fault())
		require.Empty(t, a.Fault(), "the first ones stay")
		time.Sleep(servers.Live)
		settle()
		require.Equal(t, "at-a at-b", b.names())
	})
}

// TestAnyRecordIsReadOrUnreadable: what another program writes is no reason to fail, and has no bytes that disturb INFO.
func TestAnyRecordIsReadOrUnreadable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	long := servers.Record{
		Release: strings.Repeat("<", 500), Address: strings.Repeat("\x00\xff,", 500), File: strings.Repeat("\\", 500),
		Tzdata: strings.Repeat("&", 500), Version: version(1<<53 - 2), Level: 1 << 20, Started: limit.Instant(1_700_000_000e9),
	}
	require.Less(t, len(long.Text())+100, servers.MaxRecord)
	value := "1700000000000 1700000005000 " + long.Text()
	all, err := servers.ParseBeat([]any{"1", "ok", "id", value})
	require.NoError(t, err)
	require.False(t, all[0].Unreadable)
	for _, text := range []string{
		`{"level":-1}`, `{"level":99999999}`, `{"policies":"1","level":1}`, `{"started":-1,"level":1}`, `{"started":99999999999999,"level":1}`, `{"address":"a b","level":1}`, `{"file":"ü","level":1}`, "", "[]",
		"null", "{}", `{"level":null}`, // no record of an old server, which would forbid changes
	} {
		all, err := servers.ParseBeat([]any{"1", "ok", "id", "1 2 " + text})
		require.NoError(t, err)
		require.True(t, all[0].Unreadable, text)
		require.Equal(t, servers.Record{}, all[0].Record)
	}
	all, err = servers.ParseBeat([]any{"1", "ok", "id", `1 2 {"new":{"of":"later releases"},"level":2}`})
	require.NoError(t, err)
	require.False(t, all[0].Unreadable)
	for range 20_000 {
		b, id := []byte(value), make([]byte, rng.IntN(5))
		for range 1 + rng.IntN(4) {
			b[rng.IntN(len(b))] = "0123456789{}\",: \x00\xff"[rng.IntN(18)]
		}
		for i := range id {
			id[i] = byte(rng.Uint32())
		}
		all, err := servers.ParseBeat([]any{"1", "ok", string(id), string(b)})
		require.NoError(t, err)
		for _, s := range []string{all[0].ID, all[0].Name(), all[0].Release, all[0].File, all[0].Tzdata} {
			require.NotContains(t, s, "\r")
			require.NotContains(t, s, ",")
		}
	}
	for _, reply := range []any{nil, int64(1), "x", []any{}, []any{"1", "what"}, []any{"1", "ok", "x"}, []any{"1", int64(1)}, []any{"1", "full"}} {
		_, err := servers.ParseBeat(reply)
		require.Error(t, err, "%v", reply)
	}
}
