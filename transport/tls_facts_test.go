package transport_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// temporary is an error like the one for a connection of an event loop with nothing to read.
type temporary struct{}

func (temporary) Error() string   { return "later" }
func (temporary) Timeout() bool   { return true }
func (temporary) Temporary() bool { return true }

// meagre is a connection whose Read returns only the bytes that the test has put there, and after
// them an error. Write keeps the bytes.
type meagre struct {
	net.Conn
	in, out bytes.Buffer
	then    error
}

func (m *meagre) Read(p []byte) (int, error) {
	if m.in.Len() == 0 {
		return 0, m.then
	}
	return m.in.Read(p)
}

func (m *meagre) Write(p []byte) (int, error)      { return m.out.Write(p) }
func (m *meagre) SetWriteDeadline(time.Time) error { return nil }

// shaken returns both ends of a TLS connection after the handshake. What the client writes is in
// clientOut. The server reads what is put into its meagre end.
func shaken(t *testing.T, version uint16) (server *tls.Conn, end *meagre, client *tls.Conn, clientOut *meagre) {
	t.Helper()
	serverConf, clientConf := transporttest.SelfSigned(t)
	serverConf.MinVersion, serverConf.MaxVersion = version, version
	serverConf.SessionTicketsDisabled = true
	a, b := net.Pipe()
	s, c := &swapped{Conn: a}, &swapped{Conn: b}
	server, client = tls.Server(s, serverConf), tls.Client(c, clientConf)
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	require.NoError(t, client.Handshake())
	require.NoError(t, <-done)
	end, clientOut = &meagre{then: temporary{}}, &meagre{then: temporary{}}
	s.Conn, c.Conn = end, clientOut
	require.NoError(t, errors.Join(a.Close(), b.Close()))
	return server, end, client, clientOut
}

// swapped is a connection that is replaced after the handshake.
type swapped struct{ net.Conn }

// TestTLSGoesOnAfterTemporaryErrors pins what the event loops rely on: after an error that is
// Temporary, and after no other, a connection of crypto/tls continues at the same place, wherever
// in a record that is.
func TestTLSGoesOnAfterTemporaryErrors(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		server, end, client, sent := shaken(t, version)
		text := bytes.Repeat([]byte("0123456789abcdef"), 2500) // 40,000 bytes are three records
		_, err := client.Write(text)
		require.NoError(t, err)
		var got []byte
		room := make([]byte, 64<<10)
		for _, b := range sent.out.Bytes() {
			end.in.WriteByte(b)
			n, err := server.Read(room)
			got = append(got, room[:n]...)
			if n == 0 {
				require.Equal(t, temporary{}, err, "it is not wrapped")
			}
		}
		for len(got) < len(text) {
			n, err := server.Read(room)
			require.NoError(t, err)
			got = append(got, room[:n]...)
		}
		require.Equal(t, text, got, tls.VersionName(version))
		require.NoError(t, client.CloseWrite())
		end.in.Write(sent.out.Bytes()[sent.out.Len()-1:])
		end.then = io.ErrNoProgress // not a net.Error
		_, err = server.Read(room)
		require.ErrorIs(t, err, io.ErrNoProgress)
		end.then = temporary{}
		_, err = server.Read(room)
		require.ErrorIs(t, err, io.ErrNoProgress, "it stays")
	}
}

// TestTLSHandshakeEndsWithAnyError pins why no event loop runs a handshake: it cannot continue even
// after an error that is Temporary.
func TestTLSHandshakeEndsWithAnyError(t *testing.T) {
	serverConf, clientConf := transporttest.SelfSigned(t)
	hello := &meagre{then: io.EOF}
	require.Error(t, tls.Client(hello, clientConf).Handshake())
	end := &meagre{then: temporary{}}
	half := hello.out.Len() / 2
	end.in.Write(hello.out.Bytes()[:half])
	server := tls.Server(end, serverConf)
	require.ErrorIs(t, server.Handshake(), temporary{})
	end.in.Write(hello.out.Bytes()[half:])
	require.ErrorIs(t, server.Handshake(), temporary{}, "it stays")
	require.Zero(t, end.out.Len())
}
