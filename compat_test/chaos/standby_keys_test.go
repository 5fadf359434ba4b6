package chaos_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/persistence"
)

// churn changes keys of all types in a primary until it ends. Limits and expiries are long, so
// that a key is there for the length of a test.
type churn struct {
	client *redis.Client
	keys   int // of each type
	pad    string
	stop   chan struct{}
	work   sync.WaitGroup
	made   atomic.Int64
	failed atomic.Pointer[error]

	mu   sync.Mutex // guards took
	took []time.Duration
}

// startChurn starts so many writers. A string has so many bytes.
func startChurn(t *testing.T, primary *storetest.Node, writers, keys, size int) *churn {
	t.Helper()
	c := &churn{client: primary.Client, keys: keys, pad: strings.Repeat("x", size), stop: make(chan struct{})}
	for range writers {
		c.work.Go(c.write)
	}
	t.Cleanup(func() { _ = c.end() })
	return c
}

// write sends a group of changes every few milliseconds.
func (c *churn) write() {
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	var took []time.Duration
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.took = append(c.took, took...)
	}()
	for {
		select {
		case <-c.stop:
			return
		case <-pace.C:
		}
		pipe := c.client.Pipeline()
		for range 10 {
			pipe.Do(context.Background(), c.change()...)
		}
		began := time.Now()
		// LPOP of a list that is not there is no error.
		if _, err := pipe.Exec(context.Background()); err != nil && !errors.Is(err, redis.Nil) {
			c.failed.CompareAndSwap(nil, &err)
			return
		}
		took = append(took, time.Since(began))
		c.made.Add(10)
	}
}

// change is a random change of a random key.
func (c *churn) change() []any {
	id := rand.IntN(c.keys)
	key := func(kind string) string { return fmt.Sprintf("%s-%d", kind, id) }
	n := rand.IntN(5)
	changes := [][]any{
		{"CL.THROTTLE", key("cl"), 1000, 1, 60, 1 + n},
		{"SW.ALLOW", key("sw"), 1000, 36000},
		{"SW.ALLOW", key("log"), 1000, 36000, 1, "LOG"},
		{"SW.ALLOW", key("slots"), 1000, 36000, 1, "BUCKETS", 6},
		{"TB.ACQUIRE", key("tb"), 1000, 1, 60, 1 + n},
		{"CC.ACQUIRE", key("cc"), 10, 36000, n},
		{"CC.RELEASE", key("cc"), n},
		{"SET", key("s"), fmt.Sprint(rand.Int()) + c.pad},
		{"SET", key("x"), n, "PX", 36_000_000 + rand.IntN(1_000_000)},
		{"INCR", key("n")},
		{"DEL", key("s")},
		{"HSET", key("h"), n, rand.Int()},
		{"HDEL", key("h"), n},
		{"RPUSH", key("l"), n},
		{"LPOP", key("l")},
		{"SADD", key("set"), n},
		{"SREM", key("set"), n},
		{"ZADD", key("z"), rand.IntN(100), n},
		{"PEXPIRE", key("n"), 36_000_000 + rand.IntN(1_000_000)},
	}
	return changes[rand.IntN(len(changes))]
}

// end ends the churn and returns the first error, if there was one.
func (c *churn) end() error {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.work.Wait()
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// slowest is what one of a hundred groups of changes took at least, and the worst.
func (c *churn) slowest() (p99, worst time.Duration) {
	slices.Sort(c.took)
	if len(c.took) == 0 {
		return 0, 0
	}
	return c.took[len(c.took)*99/100], c.took[len(c.took)-1]
}

// awaitMade returns when so many more changes were made.
func (c *churn) awaitMade(t *testing.T, more int64) {
	t.Helper()
	before := c.made.Load()
	storetest.Await(t, "changes are made", func() error {
		if failed := c.failed.Load(); failed != nil {
			return *failed
		}
		if made := c.made.Load() - before; made < more {
			return fmt.Errorf("%d so far", made)
		}
		return nil
	})
}

// stored is all that a node has, by database and key, to the nanosecond: what SAVE writes below
// dir, the folder that the node was started with.
func stored(t *testing.T, n *storetest.Node, dir string) map[string]string {
	t.Helper()
	n.Do("SAVE")
	saved := t.TempDir() // a copy: the node locks its own
	require.NoError(t, os.CopyFS(saved, os.DirFS(filepath.Join(dir, "appendonlydir"))))
	var text bytes.Buffer
	require.NoError(t, persistence.Dump(persistence.OS{}, saved, &text))
	all := map[string]string{}
	for line := range bytes.Lines(text.Bytes()) {
		var entry map[string]any
		require.NoError(t, json.Unmarshal(line, &entry), "%s", line)
		delete(entry, "file") // its number counts the saves
		if elements, ok := entry["elements"].([]any); ok && entry["type"] != "list" {
			// Those of hashes and sets have no order.
			slices.SortFunc(elements, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		if entry["encoding"] == "log" {
			entry["value_base64"] = liveLog(t, entry["value_base64"].(string))
		}
		same, err := json.Marshal(entry)
		require.NoError(t, err)
		all[fmt.Sprintf("%v %v", entry["db"], entry["key"])] = string(same)
	}
	return all
}

// liveLog is the state of a limit with LOG without the slots of its ring that hold no entry: they
// keep bytes that are of no consequence, and that are not sent to replicas.
func liveLog(t *testing.T, value string) string {
	t.Helper()
	const header, slot = 24, 16
	b, err := base64.StdEncoding.DecodeString(value)
	require.NoError(t, err)
	head, kept := int(binary.LittleEndian.Uint32(b[16:])), int(binary.LittleEndian.Uint32(b[20:]))
	live := slices.Concat(b[:16], b[20:header])
	for i := range kept {
		at := header + (head+i)*slot%(len(b)-header)
		live = append(live, b[at:at+slot]...)
	}
	return base64.StdEncoding.EncodeToString(live)
}

// requireSame fails where two nodes differ in a key.
func requireSame(t *testing.T, primary, replica map[string]string) {
	t.Helper()
	var differ []string
	for _, key := range slices.Sorted(maps.Keys(primary)) {
		if primary[key] != replica[key] {
			differ = append(differ, "primary "+primary[key]+"\nreplica "+replica[key])
		}
	}
	for key, value := range replica {
		if _, there := primary[key]; !there {
			differ = append(differ, "only the replica "+value)
		}
	}
	require.Empty(t, differ[:min(len(differ), 5)], "%d of %d keys differ", len(differ), len(primary))
}
