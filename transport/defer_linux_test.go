package transport_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShortRepliesOfARoundAllLeave has more clients at once than replies wait for the end
// of a round. Between short commands some send what is not postponed: long ones, long
// replies, and the last of a connection.
func TestShortRepliesOfARoundAllLeave(t *testing.T) {
	const clients, rounds = 200, 20
	r := start(t, epollOf(t, 1), newLineHandler(), patientLimits())
	connections := make([]*client, clients)
	for i := range connections {
		connections[i] = r.dial()
	}
	long := strings.Repeat("l", 5000)
	for n := range rounds {
		var group sync.WaitGroup
		for i, c := range connections {
			group.Go(func() {
				switch (i + n) % 4 {
				case 0:
					c.send("echo "+long, fmt.Sprint("echo ", i))
					c.expect(long, fmt.Sprint(i))
				case 1:
					c.send("big 10000")
					c.expect(strings.Repeat("x", 10000))
				default:
					c.send(fmt.Sprint("echo ", i, " ", n))
					c.expect(fmt.Sprint(i, " ", n))
				}
			})
		}
		group.Wait()
	}
	for i, c := range connections {
		require.NoError(t, c.Close())
		r.await(r.session(i).closed.Load)
	}
}
