package commands

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestAsManyLargeRepliesAtOnceAsFit: those that ask are granted memory in the order in
// which they came, as many at once as there is room for, and one that never fits where
// nobody else has any.
func TestAsManyLargeRepliesAtOnceAsFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &largeReplies{room: func() int64 { return 100 }}
		var mu sync.Mutex // two may be granted memory at once
		var order []string
		var wait sync.WaitGroup
		ask := func(name string, size int64) (r **largeReply) {
			r = new(*largeReply)
			wait.Go(func() {
				*r = l.ask(size)
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
		require.Equal(t, int32(3), l.waiting.Load())

		(*b).Count(30) // a piece of what was asked for, which takes no more
		require.EqualValues(t, 100, l.size())
		(*b).end()
		require.EqualValues(t, 90, l.size())
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, order, "d would fit, but c has come before")
		(*a).Count(80) // more than was thought
		require.EqualValues(t, 110, l.size())
		require.True(t, (*b).over())
		(*a).Count(-80)
		synctest.Wait()
		require.ElementsMatch(t, []string{"c", "d"}, order[2:])
		require.False(t, (*c).over())

		(*b).Count(-30)
		(*c).end()
		require.Equal(t, int64(10), l.size())
		synctest.Wait()
		require.Len(t, order, 4)
		(*d).end()
		synctest.Wait()
		require.Equal(t, "e", order[4])
		require.False(t, (*e).over(), "it is alone")

		f := ask("f", 1)
		require.Len(t, order, 5)
		l.end()
		wait.Wait()
		(*e).end()
		(*f).end()
		require.Zero(t, l.size())
	})
}
