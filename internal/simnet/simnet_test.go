package simnet_test

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/internal/simnet"
)

const a, b = "127.0.0.1", "127.0.0.2"

// connect returns both ends of a connection from a to b.
func connect(t *testing.T, n *simnet.Network) (near, far net.Conn) {
	t.Helper()
	l, err := n.Listen(b + ":0")
	require.NoError(t, err)
	near, err = n.Dial(t.Context(), a, l.Addr().String())
	require.NoError(t, err)
	far, err = l.Accept()
	require.NoError(t, err)
	require.Equal(t, near.LocalAddr(), far.RemoteAddr())
	require.Equal(t, near.RemoteAddr(), far.LocalAddr())
	return near, far
}

// in runs f in a bubble with a network.
func in(t *testing.T, f func(t *testing.T, n *simnet.Network)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) { f(t, simnet.New()) })
}

func read(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func TestBytesAndEnds(t *testing.T) {
	in(t, func(t *testing.T, n *simnet.Network) {
		near, far := connect(t, n)
		_, err := io.WriteString(near, "hello")
		require.NoError(t, err)
		read(t, far, "he")
		require.NoError(t, near.(*simnet.Conn).CloseWrite())
		read(t, far, "llo")
		_, err = far.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		_, err = io.WriteString(far, "still")
		require.NoError(t, err)
		read(t, near, "still")
		require.NoError(t, far.Close())
		require.ErrorIs(t, far.Close(), net.ErrClosed)
		_, err = near.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		_, err = far.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestAFullBufferAndDeadlines(t *testing.T) {
	in(t, func(t *testing.T, n *simnet.Network) {
		near, far := connect(t, n)
		require.NoError(t, near.SetDeadline(time.Now().Add(time.Hour)))
		began := time.Now()
		sent, err := near.Write(make([]byte, simnet.Buffer+1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, simnet.Buffer, sent)
		require.Equal(t, time.Hour, time.Since(began))
		_, err = near.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, near.SetDeadline(time.Time{}))
		go func() { _, _ = io.CopyN(io.Discard, far, simnet.Buffer) }()
		_, err = near.Write(make([]byte, 1))
		require.NoError(t, err)
		woken := make(chan error)
		go func() { _, err := near.Read(make([]byte, 1)); woken <- err }()
		synctest.Wait()
		require.NoError(t, near.SetReadDeadline(time.Unix(1, 0)))
		require.ErrorIs(t, <-woken, os.ErrDeadlineExceeded)
		require.NoError(t, far.Close())
		_, err = near.Write(make([]byte, 1))
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

// TestWritesToAClosedPeer: writes fail after bytes have arrived that the peer does not read.
func TestWritesToAClosedPeer(t *testing.T) {
	in(t, func(t *testing.T, n *simnet.Network) {
		write := func(c net.Conn) error { _, err := c.Write([]byte("x")); return err }
		near, far := connect(t, n)
		require.NoError(t, far.Close())
		require.NoError(t, write(near))
		require.ErrorIs(t, write(near), syscall.EPIPE)
		_, err := near.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)

		near, far = connect(t, n)
		require.NoError(t, write(near))
		require.NoError(t, far.Close())
		require.ErrorIs(t, write(near), syscall.EPIPE, "it has left something unread")

		n.Delay(a, b, func() time.Duration { return time.Second })
		near, far = connect(t, n)
		require.NoError(t, far.Close())
		require.NoError(t, write(near))
		require.NoError(t, write(near))
		time.Sleep(time.Second)
		require.ErrorIs(t, write(near), syscall.EPIPE)
		n.Delay(a, b, nil)

		near, far = connect(t, n)
		n.Hold(a, b)
		require.NoError(t, far.Close())
		require.NoError(t, near.SetWriteDeadline(time.Now().Add(time.Hour)))
		_, err = near.Write(make([]byte, simnet.Buffer+1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, near.SetWriteDeadline(time.Time{}))
		n.Release(a, b)
		require.ErrorIs(t, write(near), syscall.EPIPE)
	})
}

func TestDelaysKeepTheOrder(t *testing.T) {
	in(t, func(t *testing.T, n *simnet.Network) {
		near, far := connect(t, n)
		delays := []time.Duration{3 * time.Second, time.Second, 5 * time.Second}
		n.Delay(a, b, func() time.Duration { d := delays[0]; delays = delays[1:]; return d })
		began := time.Now()
		for _, s := range []string{"1", "2", "3"} {
			_, err := io.WriteString(near, s)
			require.NoError(t, err)
		}
		read(t, far, "12")
		require.Equal(t, 3*time.Second, time.Since(began))
		read(t, far, "3")
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

func TestHold(t *testing.T) {
	in(t, func(t *testing.T, n *simnet.Network) {
		near, far := connect(t, n)
		n.Hold(a, b)
		_, err := io.WriteString(near, "held")
		require.NoError(t, err)
		require.NoError(t, near.Close())
		require.NoError(t, far.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = far.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, far.SetReadDeadline(time.Time{}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = n.Dial(ctx, a, far.LocalAddr().String())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		go n.Release(a, b)
		read(t, far, "held")
		_, err = far.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		again, err := n.Dial(t.Context(), a, far.LocalAddr().String())
		require.NoError(t, err)
		require.NoError(t, again.Close())
	})
}

func TestCuts(t *testing.T) {
	in(t, func(t *testing.T, n *simnet.Network) {
		near, far := connect(t, n)
		n.CutAfter(a, b, 3)
		sent, err := io.WriteString(near, "12345")
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Equal(t, 3, sent)
		read(t, far, "123")
		for _, c := range []net.Conn{near, far} {
			_, err = c.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
		near, far = connect(t, n)
		_, err = io.WriteString(near, "lost")
		require.NoError(t, err)
		n.Cut(a, b)
		_, err = far.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = near.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.ECONNRESET)

		l, err := n.Listen(b + ":1")
		require.NoError(t, err)
		_, err = n.Listen(b + ":1")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		near, err = n.Dial(t.Context(), a, b+":1")
		require.NoError(t, err)
		n.Unplug(b)
		_, err = near.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = n.Dial(t.Context(), a, b+":1")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}
