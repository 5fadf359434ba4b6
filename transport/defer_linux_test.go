package transport_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// TestShortRepliesOfARoundAllLeave has more clients at once than the number of replies that wait
// for the end of a round. Between short commands some clients send commands that are not postponed:
// long ones, ones with long replies, and the last one of a connection.
func TestShortRepliesOfARoundAllLeave(t *testing.T) {
	const clients, rounds = 200, 20
	r := transporttest.Start(t, epollOf(t, 1), transporttest.NewLineHandler(), transporttest.PatientLimits())
	connections := make([]*transporttest.Client, clients)
	for i := range connections {
		connections[i] = r.Dial()
	}
	long := strings.Repeat("l", 5000)
	for n := range rounds {
		var group sync.WaitGroup
		for i, c := range connections {
			group.Go(func() {
				switch (i + n) % 4 {
				case 0:
					c.Send("echo "+long, fmt.Sprint("echo ", i))
					c.Expect(long, fmt.Sprint(i))
				case 1:
					c.Send("big 10000")
					c.Expect(strings.Repeat("x", 10000))
				default:
					c.Send(fmt.Sprint("echo ", i, " ", n))
					c.Expect(fmt.Sprint(i, " ", n))
				}
			})
		}
		group.Wait()
	}
	for i, c := range connections {
		require.NoError(t, c.Close())
		r.Await(r.Session(i).Gone.Load)
	}
}
