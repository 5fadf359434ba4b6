package inproc

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/limit"
)

// Epoch is the instant at which the time of a [Bubble] starts.
const Epoch = limit.Instant(1_700_000_000 * int64(time.Second))

// World has the servers of a bubble and the network that connects them.
type World struct {
	Net   *simnet.Network
	t     *testing.T
	hosts int
}

// Bubble runs f in a bubble of virtual time (testing/synctest) that starts at [Epoch]. Time passes
// only while every goroutine of the bubble waits, and then it moves at once to the next timer. So
// an event for which a test waits has happened when the wait returns, or never happens,
// independently of the load of the machine. Servers in the bubble use the goroutine transport on a
// simulated network. They have no event loops, child processes or sockets.
func Bubble(t *testing.T, f func(t *testing.T, w *World)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(0, int64(Epoch))))
		f(t, &World{Net: simnet.New(), t: t})
	})
}

// Settle waits until every other goroutine of the bubble waits: everything that needs no time to
// pass has happened when it returns.
func (w *World) Settle() { synctest.Wait() }

// Advance lets d pass, and returns after everything that is due by then has happened.
func (w *World) Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Until lets time pass, in steps of the given length, until ok returns true. If that takes longer
// than most, it fails the test with what.
func (w *World) Until(what string, step, most time.Duration, ok func() bool) {
	w.t.Helper()
	synctest.Wait()
	for end := time.Now().Add(most); !ok(); w.Advance(step) {
		require.True(w.t, time.Now().Before(end), "not within %v: %s", most, what)
	}
}

// Host returns an address of the network that no node has. All addresses are loopback addresses.
func (w *World) Host() string {
	w.hosts++
	return fmt.Sprintf("127.0.%d.%d", w.hosts/250, w.hosts%250+1)
}

// Dialer returns a function like net.Dialer.DialContext that connects from host.
func (w *World) Dialer(host string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) { return w.Net.Dial(ctx, host, address) }
}

// HTTP returns an HTTP client whose connections come from host.
func (w *World) HTTP(host string) *http.Client {
	transport := &http.Transport{DialContext: w.Dialer(host)}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
