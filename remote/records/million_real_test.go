//go:build real

package records_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/remote/engine"
	"github.com/cellserver/cellserver/remote/records"
)

// replies counts the requests and the bytes of the replies of an engine.
type replies struct {
	*engine.Engine
	requests, bytes int
}

// Eval implements [records.Engine].
func (r *replies) Eval(ctx context.Context, script string, keys, args []string) (any, error) {
	reply, err := r.Engine.Eval(ctx, script, keys, args)
	r.requests++
	r.bytes += sizeOf(reply)
	return reply, err
}

// sizeOf returns the number of bytes of the texts in reply.
func sizeOf(reply any) (n int) {
	switch is := reply.(type) {
	case string:
		return len(is)
	case []any:
		for _, one := range is {
			n += sizeOf(one)
		}
	}
	return n
}

// holder is the policies of a server with the records in the engine at url.
func holder(t *testing.T, url string) (*registry.Registry, *records.Store, *replies) {
	r := registry.New(registry.Options{Shared: true})
	e := &replies{Engine: open(t, url)}
	return r, records.New(records.Options{
		Engine: e, Observer: r, Timeout: time.Minute, Now: func() limit.Instant { return e.Now() }, Log: slog.New(slog.DiscardHandler),
	}), e
}

// engineTime returns the processor time that the engine has used.
func engineTime(t *testing.T, n *storetest.Node) time.Duration {
	sum := 0.0
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		s, err := strconv.ParseFloat(n.Info("cpu")[field], 64)
		require.NoError(t, err)
		sum += s
	}
	return time.Duration(sum * float64(time.Second))
}

// TestAMillionOverrides: a server that starts reads many overrides, a million with CELL_LONG, and follows a change of one of
// them by what has changed.
func TestAMillionOverrides(t *testing.T) {
	const step = 20_000
	all := effort.Steps(2*step, 1_000_000)
	node := storetest.Best(t).Single(t, storetest.Options{})
	limits, err := policy.ParseLimits([][]byte{[]byte("SW"), []byte("5"), []byte("60")}, false, policy.Bounds{})
	require.Empty(t, err)
	set := func(r *registry.Registry, st registry.Store, entries ...*policy.Entry) {
		require.NoError(t, r.Update(st, registry.Author{What: "test"}, func(*policy.Builder, limit.Instant) (edits []registry.Edit, _ error) {
			for _, e := range entries {
				edits = append(edits, registry.Set(e))
			}
			return edits, nil
		}))
	}
	override := func(i int) *policy.Entry {
		return &policy.Entry{Kind: policy.Override, Policy: "api", Pattern: fmt.Sprint("customer:", i), Limits: limits, Until: limit.MaxInstant}
	}
	writer, st, _ := holder(t, node.URL())
	require.NoError(t, st.Load(t.Context()))
	set(writer, st, &policy.Entry{Kind: policy.Main, Policy: "api", Limits: limits, Until: limit.MaxInstant})
	for from := 0; from < all; from += step {
		var entries []*policy.Entry
		for i := range step {
			entries = append(entries, override(from+i))
		}
		set(writer, st, entries...)
	}
	before := inproc.HeapBytes()
	reader, into, e := holder(t, node.URL())
	engineBefore, used, began := engineTime(t, node), effort.CPU(), time.Now()
	require.NoError(t, into.Load(t.Context()))
	reader.Table()
	spent, took, engineTook := time.Since(began), effort.CPU()-used, engineTime(t, node)-engineBefore
	t.Logf("%d overrides are loaded in %v, by %v of the processor here and %v in the engine: %d requests, %d MB of replies, %d MB of memory",
		all, spent.Round(time.Millisecond), took.Round(time.Millisecond), engineTook.Round(time.Millisecond),
		e.requests, e.bytes>>20, (inproc.HeapBytes()-before)>>20)
	require.Less(t, e.requests, 2*all/1000, "two requests for each thousand records at most")

	for i := range 3 {
		set(writer, st, override(i))
		e.requests, e.bytes = 0, 0
		used, began = effort.CPU(), time.Now()
		changed, err := into.Follow(t.Context())
		require.NoError(t, err)
		require.True(t, changed)
		reader.Table()
		t.Logf("a change is followed in %v, by %v of the processor: %d requests, %d bytes", time.Since(began), effort.CPU()-used, e.requests, e.bytes)
		require.Equal(t, 1, e.requests)
		require.Less(t, e.bytes, 1000)
	}
}
