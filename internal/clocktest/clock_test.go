package clocktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

var _ clock.Clock = (*clocktest.Clock)(nil)

func TestTimersFireInOrder(t *testing.T) {
	c := clocktest.New(1000)
	var fired []limit.Instant
	note := func() { fired = append(fired, c.Now()) }
	c.AfterFunc(30, note)
	c.AfterFunc(10, func() {
		note()
		c.AfterFunc(5, note) // set by a timer, and due before the end of Advance
		c.AfterFunc(500, note)
	})
	stopped := c.AfterFunc(20, note)
	require.True(t, stopped.Stop())
	require.False(t, stopped.Stop())
	c.Advance(9)
	require.Empty(t, fired)
	c.Set(1050)
	require.Equal(t, []limit.Instant{1010, 1015, 1030}, fired)
	require.Equal(t, limit.Instant(1050), c.Now())
	require.Equal(t, 1, c.Timers())
}

func TestCivil(t *testing.T) {
	c := clocktest.New(1000)
	c.SetCivil(time.Second)
	require.Equal(t, limit.Instant(1000+1e9), c.Civil(1000))
	require.Equal(t, limit.Instant(1000), c.Derived(c.Civil(1000)))
}

func TestAwaitTimers(t *testing.T) {
	c := clocktest.New(1000)
	c.AfterFunc(10, func() {})
	c.AwaitTimers(1)
	there := make(chan struct{})
	go func() {
		c.AwaitTimers(3)
		close(there)
	}()
	c.AfterFunc(10, func() {})
	c.AfterFunc(20, func() {})
	<-there
	require.Equal(t, 3, c.Timers())
}
