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

	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

func testEcho(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	for i := range 100 {
		c.Send(fmt.Sprint("echo ", i), "echo and again")
		c.Expect(fmt.Sprint(i), "and again")
	}
}

func testUnixSocket(t *testing.T, f transporttest.Factory) {
	l, err := net.Listen("unix", socketPath(t))
	require.NoError(t, err)
	r := transporttest.StartOn(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits(), l)
	c := r.Dial()
	c.Send("echo 1", "big 100000", "echo 2")
	c.Expect("1", strings.Repeat("x", 100000), "2")
	s := r.Session(0)
	require.Equal(t, l.Addr().String(), s.Peer.RemoteAddr().String())
	require.Equal(t, l.Addr().String(), s.Peer.LocalAddr().String())
	require.NoError(t, c.Close())
	r.Await(s.Gone.Load)
}

func testAddresses(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	s := r.Session(0)
	require.Equal(t, c.LocalAddr().String(), s.Peer.RemoteAddr().String())
	require.Equal(t, c.RemoteAddr().String(), s.Peer.LocalAddr().String())
}

func testDrip(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	for _, b := range []byte("echo one\necho two\nbig 3\n") {
		_, err := c.Write([]byte{b})
		require.NoError(t, err)
	}
	c.Expect("one", "two", "xxx")
	long := strings.Repeat("y", 3000)
	for _, b := range []byte("echo " + long + "\n") {
		_, err := c.Write([]byte{b})
		require.NoError(t, err)
	}
	c.Expect(long)
}

func testSplits(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
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
				return // the reader below gets the error, too
			}
			rest = rest[n:]
		}
	}()
	got := make([]byte, want.Len())
	_, err := io.ReadFull(c.Reader, got)
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got))
}

func testDeepPipeline(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	const depth = 50_000
	go io.WriteString(c, strings.Repeat("echo abc\n", depth))
	got := make([]byte, 4*depth)
	_, err := io.ReadFull(c.Reader, got)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("abc\n", depth), string(got))
}

func testLargeCommand(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	c := r.Dial()
	for range 3 {
		large := strings.Repeat("v", 1<<20)
		go c.Send("echo "+large, "echo after")
		c.Expect(large, "after")
	}
}

func testEndlessInput(t *testing.T, f transporttest.Factory) {
	lim := transporttest.PatientLimits()
	lim.MaxInput = 100_000
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), lim)
	c := r.Dial()
	go io.WriteString(c, strings.Repeat("v", 300_000)) // fails when the connection is closed
	r.Await(r.Session(0).Gone.Load)
	require.LessOrEqual(t, r.Transport.Stats().BytesIn, int64(lim.MaxInput))
}

func testUnread(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	const size, clients = 100_000, 5
	line := strings.Repeat("v", size)
	all := make([]*transporttest.Client, clients)
	for i := range all {
		all[i] = r.Dial()
		io.WriteString(all[i], "echo "+line)
	}
	unread := func() int64 { return r.Transport.Stats().Unread }
	r.Eventually(func() bool { return unread() >= clients*size })
	require.LessOrEqual(t, unread(), int64(4*clients*size))
	all[0].Close()
	r.Eventually(func() bool { return unread() <= 4*(clients-1)*size })
	for _, c := range all[1:] {
		c.Send("")
		c.Expect(line)
	}
	r.Eventually(func() bool { return unread() == 0 })
}

func testHalfClose(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	for _, n := range []int{1, 5000} {
		c := r.Dial()
		go func() {
			io.WriteString(c, strings.Repeat("echo abc\n", n)+"echo cut o")
			_ = c.CloseWrite() // the test has ended, or reads what came before
		}()
		got, err := io.ReadAll(c.Reader)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("abc\n", n), string(got))
	}
}

func testReset(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	for i := range 20 {
		c := r.Dial()
		c.Send("echo whole")
		c.Expect("whole")
		_, err := io.WriteString(c, "echo cut o")
		require.NoError(t, err)
		require.NoError(t, c.TCP().SetLinger(0))
		require.NoError(t, c.TCP().Close())
		r.Await(r.Session(i).Gone.Load)
	}
	c := r.Dial()
	c.Send("echo alive")
	c.Expect("alive")
}

func testCloseDelivers(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	for range 20 {
		c := r.Dial()
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(c, "echo 1\nbye\n"+strings.Repeat("echo late\n", 50_000))
			sent <- err
		}()
		c.Expect("1", "bye")
		c.ExpectEnd()
		require.NoError(t, errors.Join(<-sent, c.Close()))
	}
}

func testRetire(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	serve := func() (net.Listener, chan error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- r.Transport.Serve(l) }()
		return l, served
	}
	l, served := serve()
	nc, err := transporttest.Dial(r.Transport, l.Addr())
	require.NoError(t, err)
	defer nc.Close()
	c := &transporttest.Client{T: t, Conn: nc, Reader: bufio.NewReader(nc)}
	c.Send("echo 1")
	c.Expect("1")
	r.Transport.Retire(l)
	require.ErrorIs(t, <-served, net.ErrClosed)
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
	r.Transport.Retire(l)
	c.Send("echo 2")
	c.Expect("2")
	other := r.Dial()
	other.Send("echo 3")
	other.Expect("3")
	for range 20 { // it may not have begun
		l, served := serve()
		r.Transport.Retire(l)
		require.ErrorIs(t, <-served, net.ErrClosed)
	}
}

func testStats(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	a, b := r.Dial(), r.Dial()
	a.Send("echo 12345")
	a.Expect("12345")
	b.Send("echo 123")
	b.Expect("123")
	require.EqualValues(t, 2, r.Transport.Stats().Accepted)
	// A TLS connection also counts as a handshake until the goroutine of the handshake continues,
	// which may be after the first reply.
	r.Eventually(func() bool { return r.Transport.Stats().Connections == 2 })
	require.NoError(t, a.Close())
	r.Eventually(func() bool { return r.Transport.Stats().Connections == 1 })
	// The writer counts after the bytes have been sent, so the reader may be ahead of it.
	r.Eventually(func() bool {
		s := r.Transport.Stats()
		return s.BytesIn == 11+9 && s.BytesOut == 6+4 && s.Pending == 0 && s.Reads == 2 && s.Writes == 2
	})
}
