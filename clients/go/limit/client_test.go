package limit_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/limit"
)

// TestClusterClientsSendACommandOnce: go-redis follows redirections, and would also send a command again after a lost connection.
func TestClusterClientsSendACommandOnce(t *testing.T) {
	var charged atomic.Int64
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"limits:6379"}, ContextTimeoutEnabled: true, MaxRetries: -1, Protocol: 2,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: "limits:6379"}}}}, nil
		},
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go loseCharges(far, &charged)
			return near, nil
		},
	})
	defer client.Close() //nolint:errcheck // nothing is under way
	asked, err := limit.GoRedis(client)
	require.NoError(t, err)
	_, err = asked.Do(t.Context(), []string{"TB.ACQUIRE", "k", "10", "1", "1000", "1", "MS"})
	require.Error(t, err)
	require.EqualValues(t, 1, charged.Load())
}

// loseCharges answers commands of a connection with errors, and closes it when it has read TB.ACQUIRE.
func loseCharges(conn net.Conn, charged *atomic.Int64) {
	defer conn.Close()
	for r := bufio.NewReader(conn); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		switch {
		case strings.Contains(line, "TB.ACQUIRE"):
			charged.Add(1)
			return
		case strings.HasPrefix(line, "*"):
			go io.WriteString(conn, "-ERR unknown command\r\n")
		}
	}
}
