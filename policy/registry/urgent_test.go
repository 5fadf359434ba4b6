package registry_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
)

// brakes makes urgent changes, each on a goroutine of its own.
type brakes struct {
	t   *testing.T
	r   *registry.Registry
	m   *memory
	n   int
	all sync.WaitGroup
}

// pull blocks one more key, and returns when the change waits.
func (b *brakes) pull() {
	b.n++
	pattern := fmt.Sprint("evil", b.n)
	b.all.Go(func() {
		by := registry.Author{What: "BLOCK", Urgent: true}
		err := b.r.Update(b.m, by, func(*policy.Builder, limit.Instant) ([]registry.Edit, error) {
			return []registry.Edit{registry.Set(&policy.Entry{Kind: policy.Block, Policy: "api", Pattern: pattern, Until: limit.MaxInstant})}, nil
		})
		if err != nil {
			b.t.Error(err)
		}
	})
	for !b.r.UrgentWaits() {
		runtime.Gosched()
	}
}

func manyOverrides(t *testing.T, n int) (edits []registry.Edit) {
	for i := range n {
		edits = append(edits, registry.Set(&policy.Entry{
			Kind: policy.Override, Policy: "api", Pattern: fmt.Sprint("tenant", i), Limits: limits(t, "TB 1 1 1"), Until: limit.MaxInstant,
		}))
	}
	return edits
}

// TestUrgentChangesDoNotWait: a long change gives way to urgent ones and completes after them.
// After it has given way a number of times it continues.
func TestUrgentChangesDoNotWait(t *testing.T) {
	for name, c := range map[string]struct {
		times, plans, first int // first is the number of urgent changes before the long one
		late                bool
	}{
		"once":                      {times: 1, plans: 2, first: 1},
		"once, amid the records":    {times: 1, plans: 2, first: 1, late: true},
		"again and again":           {times: 100, plans: 9, first: 8},
		"again and again, and late": {times: 100, plans: 9, first: 8, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m := registry.New(registry.Options{}), newMemory()
			require.NoError(t, set(t, r, m, mainOf(t, "api", "TB 200 100 1")))
			edits, b, plans := manyOverrides(t, 50), &brakes{t: t, r: r, m: m}, 0
			pull := func() {
				if b.n < c.times && b.n < plans {
					b.pull()
				}
			}
			if c.late {
				m.asked = pull
			}
			require.NoError(t, r.Update(m, registry.Author{What: "APPLY"}, func(is *policy.Builder, _ limit.Instant) ([]registry.Edit, error) {
				plans++
				require.Equal(t, policy.Sizes{Policies: 1, Others: plans - 1}, is.Sizes(), "nothing is left of the attempt before")
				if !c.late {
					pull()
				}
				return edits, nil
			}))
			b.all.Wait()
			m.asked = nil
			require.Equal(t, c.plans, plans)
			require.Len(t, entriesOf(r), 1+50+b.n)
			require.Equal(t, entriesOf(r), m.entries())
			changes := r.Changes(registry.Which{Count: 100})
			require.Equal(t, "APPLY", changes[len(changes)-2-c.first].What)
		})
	}
}

// TestUrgentChangesDoNotWaitForDeletions: the records of removed entries are deleted later.
func TestUrgentChangesDoNotWaitForDeletions(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	require.NoError(t, set(t, r, m, mainOf(t, "api", "TB 200 100 1")))
	edits, b := manyOverrides(t, 50), &brakes{t: t, r: r, m: m}
	update := func(edits []registry.Edit) {
		require.NoError(t, r.Update(m, registry.Author{}, func(*policy.Builder, limit.Instant) ([]registry.Edit, error) { return edits, nil }))
	}
	update(edits)
	gone := make([]registry.Edit, len(edits))
	for i := range gone {
		gone[i] = registry.Delete(edits[i].Set)
	}
	m.deletes = sync.OnceFunc(b.pull)
	update(gone)
	b.all.Wait()
	require.Len(t, entriesOf(r), 2)
	require.Equal(t, entriesOf(r), entriesOf(m.reload(t)))
	update(edits[:1])
	r.Tidy(m, true)
	require.Len(t, entriesOf(r), 3)
	require.Equal(t, entriesOf(r), m.entries())
}

// TestWhatFreesNeedsNoMemory: removing a block or a policy never fails for lack of memory, and
// setting a block fails only beyond a bound.
func TestWhatFreesNeedsNoMemory(t *testing.T) {
	r, m := registry.New(registry.Options{}), newMemory()
	block := &policy.Entry{Kind: policy.Block, Policy: "api", Pattern: "evil", Until: limit.MaxInstant}
	main := mainOf(t, "api", "TB 200 100 1")
	for _, c := range []struct {
		edits []registry.Edit
		need  registry.Need
	}{
		{[]registry.Edit{registry.Set(main)}, registry.Spare},
		{[]registry.Edit{registry.Set(block)}, registry.Urgent},
		{[]registry.Edit{registry.Delete(block)}, registry.Frees},
		{[]registry.Edit{registry.Set(block), registry.Delete(main)}, registry.Urgent},
		{[]registry.Edit{registry.Set(main), registry.Set(block)}, registry.Spare},
		{[]registry.Edit{registry.Delete(block), registry.Delete(main)}, registry.Frees},
	} {
		require.NoError(t, r.Update(m, registry.Author{}, func(*policy.Builder, limit.Instant) ([]registry.Edit, error) { return c.edits, nil }))
		require.Equal(t, c.need, m.need)
	}
}
