package transport_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/goroutine"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// conformance has the tests that every transport has to pass, by name.
var conformance = []struct {
	name string
	test func(t *testing.T, f transporttest.Factory)
	// plain tests are about sockets without TLS. slow ones take seconds, and are not repeated for
	// each version of TLS.
	plain, slow bool
}{
	{name: "replies come in order over TCP", test: testEcho},
	{name: "replies come in order over a unix socket", test: testUnixSocket},
	{name: "a drip of single bytes", test: testDrip},
	{name: "any split of the input means the same", test: testSplits},
	{name: "a deep pipeline", test: testDeepPipeline},
	{name: "a command of a megabyte", test: testLargeCommand},
	{name: "input without an end is cut off", test: testEndlessInput},
	{name: "input that is kept is counted", test: testUnread, plain: true},
	{name: "half-close is answered, then closed", test: testHalfClose},
	{name: "a reset in the middle of a command", test: testReset},
	{name: "Close delivers the last reply past unread input", test: testCloseDelivers},
	{name: "counters add up", test: testStats},
	{name: "a retired listener is closed, and its connections stay", test: testRetire},
	{name: "addresses", test: testAddresses},
	{name: "a parked command keeps the order", test: testParkOrder},
	{name: "a parked session keeps input up to the backlog", test: testParkBacklog},
	{name: "a parked client that stops sending is answered", test: testParkHalfClose},
	{name: "a waiting client that hangs up is noticed", test: testWaitHangUp},
	{name: "a parked client that resets is noticed", test: testParkReset},
	{name: "a Wake during Feed leads to another", test: testWakeDuringFeed},
	{name: "a Wake before the first byte", test: testWakeBeforeFirstByte},
	{name: "wake storms lose nothing", test: testWakeStorm, slow: true},
	{name: "abort while idle, parked and writing", test: testAbort},
	{name: "peers outlive their connection", test: testPeerAfterEnd},
	{name: "a barrier holds replies back", test: testBarrier},
	{name: "an abort reaches a held reply", test: testBarrierAbort},
	{name: "more is held back than a round keeps", test: testHeldMuch},
	{name: "what waited may be changed before it leaves", test: testSettle},
	{name: "bytes and what lies elsewhere come in order", test: testPieces, slow: true},
	{name: "what lies elsewhere is released with its connection", test: testPiecesReleased},
	{name: "who takes much does not hold others up", test: testPiecesFair, slow: true},
	{name: "slow readers cost bounded memory and are cut", test: testSlowReaders, slow: true},
	{name: "a slow but steady reader is kept", test: testSteadyReader, slow: true},
	{name: "who takes nothing of memory that others wait for is cut sooner", test: testPressed, slow: true},
	{name: "a flood that is never read stops at the backlog", test: testFlood, slow: true},
	{name: "one flood does not starve others", test: testFairness, slow: true},
	{name: "limits reach live connections", test: testSetLimits},
	{name: "refusals are delivered and hold up nobody", test: testRefusal, plain: true},
	{name: "connections come and go", test: testChurn, slow: true},
	{name: "graceful stop finishes what it has begun", test: testShutdown},
	{name: "graceful stop waits for parked, not for waiting", test: testShutdownParked},
	{name: "graceful stop is cut short by its context", test: testShutdownCut},
	{name: "no Serve after Shutdown", test: testServeAfterShutdown},
	{name: "a listener closed by its owner", test: testListenerClosed},
}

// run checks the guarantees of the package for one kind of transport.
func run(t *testing.T, f transporttest.Factory) {
	for _, c := range conformance {
		t.Run(c.name, func(t *testing.T) { c.test(t, f) })
	}
}

func TestMain(m *testing.M) {
	if child() {
		return
	}
	os.Exit(transporttest.RunTests(m))
}

func TestGoroutineConformance(t *testing.T) { run(t, newGoroutine) }

func newGoroutine(h transport.Handler, lim transport.Limits, clock *transporttest.Clock) transport.Transport {
	return goroutine.New(h, lim, transporttest.Quiet, clock.Now)
}

func socketPath(t *testing.T) string { return filepath.Join(t.TempDir(), "s") }
