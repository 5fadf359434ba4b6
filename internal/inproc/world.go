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

	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/limit"
)

// Epoch is when a [Bubble] begins.
const Epoch = limit.Instant(1_700_000_000 * int64(time.Second))

// World is what is in a bubble: servers, and the network between them.
type World struct {
	Net   *simnet.Network
	t     *testing.T
	hosts int
}

// Bubble runs f in a bubble of virtual time (testing/synctest) that begins at [Epoch]. Time
// moves only while every goroutine of the bubble waits, and then at once to the next timer. So
// what a test waits for has happened when the wait returns, or never happens, and no load of the
// machine can change that. Servers run the goroutine transport on a simulated network. They have
// no event loops, child processes or sockets.
func Bubble(t *testing.T, f func(t *testing.T, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(0, int64(Epoch))))
		f(t, &World{Net: simnet.New(), t: t})
	})
}

// Settle returns when every other goroutine waits for something: what could happen without time
// passing has happened.
func (w *World) Settle() { synctest.Wait() }

// Advance lets d pass, and returns when everything due by then has happened.
func (w *World) Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Until lets time pass, a step after the other, until ok says so. It fails after most.
func (w *World) Until(what string, step, most time.Duration, ok func() bool) {
	w.t.Helper()
	synctest.Wait()
	for end := time.Now().Add(most); !ok(); w.Advance(step) {
		require.True(w.t, time.Now().Before(end), "not within %v: %s", most, what)
	}
}

// Host returns an address of the network that nothing has yet, of loopback as all are.
func (w *World) Host() string {
	w.hosts++
	return fmt.Sprintf("127.0.%d.%d", w.hosts/250, w.hosts%250+1)
}

// Dialer returns a function that connects a host with others, as net.Dialer.DialContext does.
func (w *World) Dialer(host string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) { return w.Net.Dial(ctx, host, address) }
}

// HTTP returns a client of HTTP at a host.
func (w *World) HTTP(host string) *http.Client {
	transport := &http.Transport{DialContext: w.Dialer(host)}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
