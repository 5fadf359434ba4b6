package pubsub

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
)

// TestResetFreesTheRoomOfSubscriptions: a Go map keeps the memory of all entries that it ever
// had, which the counters do not include.
func TestResetFreesTheRoomOfSubscriptions(t *testing.T) {
	h, cl := &hub{}, &command.Client{}
	for i := range 2 * command.SliceWords {
		h.subscribe(cl, toChannel, strconv.AppendInt(nil, int64(i), 10))
	}
	require.True(t, h.unsubscribeSome(cl, command.SliceWords))
	require.True(t, cl.Subscribed())
	h.unsubscribeAll(cl)
	require.False(t, cl.Subscribed())
	require.Zero(t, h.memory.Load())
	require.Nil(t, h.of(cl).topics[toChannel])
	h.subscribe(cl, toChannel, []byte("a"))
	require.Equal(t, 1, h.subscribed(cl, toChannel))
}
