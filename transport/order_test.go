package transport_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func testEcho(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	for i := range 100 {
		c.send(fmt.Sprint("echo ", i), "echo and again")
		c.expect(fmt.Sprint(i), "and again")
	}
}

func testUnixSocket(t *testing.T, f factory) {
	l, err := net.Listen("unix", socketPath(t))
	require.NoError(t, err)
	r := startOn(t, f, newLineHandler(), patientLimits(), l)
	c := r.dial()
	c.send("echo 1", "big 100000", "echo 2")
	c.expect("1", strings.Repeat("x", 100000), "2")
	s := r.session(0)
	require.Equal(t, l.Addr().String(), s.peer.RemoteAddr().String())
	require.Equal(t, l.Addr().String(), s.peer.LocalAddr().String())
	require.NoError(t, c.Close())
	r.await(s.closed.Load)
}

func testAddresses(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	s := r.session(0)
	require.Equal(t, c.LocalAddr().String(), s.peer.RemoteAddr().String())
	require.Equal(t, c.RemoteAddr().String(), s.peer.LocalAddr().String())
}

func testDrip(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	for _, b := range []byte("echo one\necho two\nbig 3\n") {
		_, err := c.Write([]byte{b})
		require.NoError(t, err)
	}
	c.expect("one", "two", "xxx")
	long := strings.Repeat("y", 3000)
	for _, b := range []byte("echo " + long + "\n") {
		_, err := c.Write([]byte{b})
		require.NoError(t, err)
	}
	c.expect(long)
}

func testSplits(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	rng := rand.New(rand.NewPCG(1, 2))
	var in, want strings.Builder
	for i := range 3000 {
		word := fmt.Sprintf("%d-%s", i, strings.Repeat("z", rng.IntN(300)))
		if rng.IntN(200) == 0 {
			word += strings.Repeat("L", rng.IntN(200_000))
		}
		fmt.Fprintf(&in, "echo %s\n", word)
		fmt.Fprintf(&want, "%s\n", word)
	}
	go func() {
		rest := in.String()
		for len(rest) > 0 {
			n := min(len(rest), 1+rng.IntN(1+rng.IntN(40_000)))
			if _, err := io.WriteString(c, rest[:n]); err != nil {
				return // the reader below sees it too
			}
			rest = rest[n:]
		}
	}()
	got := make([]byte, want.Len())
	_, err := io.ReadFull(c.r, got)
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got))
}

func testDeepPipeline(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	const depth = 50_000
	go io.WriteString(c, strings.Repeat("echo abc\n", depth))
	got := make([]byte, 4*depth)
	_, err := io.ReadFull(c.r, got)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("abc\n", depth), string(got))
}

func testLargeCommand(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	c := r.dial()
	for range 3 {
		large := strings.Repeat("v", 1<<20)
		go c.send("echo "+large, "echo after")
		c.expect(large, "after")
	}
}

func testEndlessInput(t *testing.T, f factory) {
	lim := patientLimits()
	lim.MaxInput = 100_000
	r := start(t, f, newLineHandler(), lim)
	c := r.dial()
	go io.WriteString(c, strings.Repeat("v", 300_000)) // fails when it is cut
	r.await(r.session(0).closed.Load)
	require.LessOrEqual(t, r.tr.Stats().BytesIn, int64(lim.MaxInput))
}

func testUnread(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	const size, clients = 100_000, 5
	line := strings.Repeat("v", size)
	all := make([]*client, clients)
	for i := range all {
		all[i] = r.dial()
		io.WriteString(all[i], "echo "+line)
	}
	unread := func() int64 { return r.tr.Stats().Unread }
	r.eventually(func() bool { return unread() >= clients*size })
	require.LessOrEqual(t, unread(), int64(4*clients*size))
	all[0].Close()
	r.eventually(func() bool { return unread() <= 4*(clients-1)*size })
	for _, c := range all[1:] {
		c.send("")
		c.expect(line)
	}
	r.eventually(func() bool { return unread() == 0 })
}

func testHalfClose(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	for _, n := range []int{1, 5000} {
		c := r.dial()
		go func() {
			io.WriteString(c, strings.Repeat("echo abc\n", n)+"echo cut o")
			_ = c.closeWrite() // the test has ended, or reads what came before
		}()
		got, err := io.ReadAll(c.r)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("abc\n", n), string(got))
	}
}

func testReset(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	for i := range 20 {
		c := r.dial()
		c.send("echo whole")
		c.expect("whole")
		_, err := io.WriteString(c, "echo cut o")
		require.NoError(t, err)
		require.NoError(t, c.tcp().SetLinger(0))
		require.NoError(t, c.tcp().Close())
		r.await(r.session(i).closed.Load)
	}
	c := r.dial()
	c.send("echo alive")
	c.expect("alive")
}

func testCloseDelivers(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	for range 20 {
		c := r.dial()
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(c, "echo 1\nbye\n"+strings.Repeat("echo late\n", 50_000))
			sent <- err
		}()
		c.expect("1", "bye")
		c.expectEnd()
		require.NoError(t, errors.Join(<-sent, c.Close()))
	}
}

func testRetire(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	serve := func() (net.Listener, chan error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- r.tr.Serve(l) }()
		return l, served
	}
	l, served := serve()
	nc, err := dial(r.tr, l.Addr())
	require.NoError(t, err)
	defer nc.Close()
	c := &client{t: t, Conn: nc, r: bufio.NewReader(nc)}
	c.send("echo 1")
	c.expect("1")
	r.tr.Retire(l)
	require.ErrorIs(t, <-served, net.ErrClosed)
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
	r.tr.Retire(l)
	c.send("echo 2")
	c.expect("2")
	other := r.dial()
	other.send("echo 3")
	other.expect("3")
	for range 20 { // it may not have begun
		l, served := serve()
		r.tr.Retire(l)
		require.ErrorIs(t, <-served, net.ErrClosed)
	}
}

func testStats(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	a, b := r.dial(), r.dial()
	a.send("echo 12345")
	a.expect("12345")
	b.send("echo 123")
	b.expect("123")
	require.EqualValues(t, 2, r.tr.Stats().Accepted)
	// A connection with TLS counts as a handshake too until the goroutine of that goes on, which
	// may be after the first reply.
	r.eventually(func() bool { return r.tr.Stats().Connections == 2 })
	require.NoError(t, a.Close())
	r.eventually(func() bool { return r.tr.Stats().Connections == 1 })
	// The writer counts after the bytes have left, so the reader may be ahead of it.
	r.eventually(func() bool {
		s := r.tr.Stats()
		return s.BytesIn == 11+9 && s.BytesOut == 6+4 && s.Pending == 0 && s.Reads == 2 && s.Writes == 2
	})
}
