package budget

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
)

// TestAsManyLargeRepliesAtOnceAsFit: requests are granted in the order of arrival, as many at once
// as there is room for. A request that never fits is granted when no memory is held.
func TestAsManyLargeRepliesAtOnceAsFit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := &Budget{Room: func() int64 { return 100 }}
		var mu sync.Mutex // two may be granted memory at once
		var order []string
		var wait sync.WaitGroup
		ask := func(name string, size int64) (r **Grant) {
			r = new(*Grant)
			wait.Go(func() {
				*r = l.Ask(size)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
			})
			synctest.Wait()
			return r
		}
		a, b := ask("a", 60), ask("b", 40)
		c, d, e := ask("c", 50), ask("d", 10), ask("e", 500)
		require.Equal(t, []string{"a", "b"}, order)
		require.Equal(t, int32(3), l.Waiting.Load())

		(*b).Count(30) // a piece within the grant, which takes no more memory
		require.EqualValues(t, 100, l.Size())
		(*b).End()
		require.EqualValues(t, 90, l.Size())
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, order, "d would fit, but c has come before")
		(*a).Count(80) // more than was asked for
		require.EqualValues(t, 110, l.Size())
		require.True(t, (*b).Over())
		(*a).Count(-80)
		synctest.Wait()
		require.ElementsMatch(t, []string{"c", "d"}, order[2:])
		require.False(t, (*c).Over())

		(*b).Count(-30)
		(*c).End()
		require.Equal(t, int64(10), l.Size())
		synctest.Wait()
		require.Len(t, order, 4)
		(*d).End()
		synctest.Wait()
		require.Equal(t, "e", order[4])
		require.False(t, (*e).Over(), "it is alone")

		f := ask("f", 1)
		require.Len(t, order, 5)
		l.End()
		wait.Wait()
		(*e).End()
		(*f).End()
		require.Zero(t, l.Size())
	})
}
