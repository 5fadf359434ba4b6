package transactions_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
)

// TestLongTransactionLeavesTheLoop runs a queue of 20,000 commands with watched keys.
func TestLongTransactionLeavesTheLoop(t *testing.T) {
	b := inproc.Open(t)
	b.Do("WATCH", "k1")
	b.Do("MULTI")
	for i := range 20_000 {
		b.Do("SET", "k"+strconv.Itoa(i), "v")
	}
	require.Equal(t, transport.Park, b.Turn(inproc.Encode(nil, "EXEC"), nil).Next)
	require.Equal(t, inproc.Pong, string(b.Another().Turn(inproc.Encode(nil, "PING"), nil).Out), "the loop is free meanwhile")
	reply := b.Rest()
	require.Equal(t, "*20000\r\n"+strings.Repeat(inproc.OK, 20_000), reply)
	require.Equal(t, ":20000\r\n", b.Do("DBSIZE"))
	require.Equal(t, "-ERR EXEC without MULTI\r\n", b.Do("EXEC"), "it is over")
}

// TestTransactionOverLargeCollectionsLeavesTheLoop queues few commands that read many elements.
func TestTransactionOverLargeCollectionsLeavesTheLoop(t *testing.T) {
	b := inproc.Open(t)
	push := []string{"RPUSH", "l"}
	for i := range 20_000 {
		push = append(push, strconv.Itoa(i))
	}
	b.Do(push...)
	b.Do("MULTI")
	b.Do("LREM", "l", "0", "7")
	turn := b.Turn(inproc.Encode(nil, "EXEC"), nil)
	require.Equal(t, transport.Park, turn.Next)
	require.Equal(t, "*1\r\n:1\r\n", b.Rest())
}
