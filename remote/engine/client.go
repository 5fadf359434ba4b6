package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/cellserver/cellserver/optionfile"
)

const (
	// controlTimeout is the time limit of requests for the topology, of probes, and of requests for
	// operations on all keys.
	controlTimeout = time.Second
	// callTimeout is the maximum time limit of a call of Eval. Usually the context has an earlier
	// deadline.
	callTimeout = time.Minute
	// bufferSize is the size of a connection's buffers for reading and writing.
	bufferSize = 64 << 10
	// workers is the number of pipelines of a node that are in progress at once: while the
	// answers of one pipeline are handed out, the node works on the other.
	workers = 2
	// connections is the maximum number of connections to a node: one for each worker, and others
	// for the requests with controlTimeout.
	connections = workers + 6
)

// dialError says that no connection was made, so that no request was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// dialer makes connections to nodes.
type dialer struct {
	timeout time.Duration
	connect func(ctx context.Context, network, address string) (net.Conn, error) // function that makes a connection, without TLS
	tls     *tls.Config                                                          // nil for connections without TLS
}

// newDialer returns a dialer. It reads the files that t names; a nil t means no TLS. timeout is
// the time limit of one answer.
func newDialer(t *TLS, timeout time.Duration) (*dialer, error) {
	// A TLS handshake takes longer than an answer, so the time limit is larger.
	d := &dialer{timeout: max(200*time.Millisecond, 2*timeout)}
	d.connect = (&net.Dialer{Timeout: d.timeout, KeepAlive: 5 * time.Minute}).DialContext
	if t == nil {
		return d, nil
	}
	d.tls = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.SkipVerify} //nolint:gosec // the operator has asked for that, and is warned
	if t.CA != "" {
		pem, err := optionfile.Read(t.CA, maxCertificates)
		if err != nil {
			return nil, fmt.Errorf("CA of the store: %w", err)
		}
		d.tls.RootCAs = x509.NewCertPool()
		if !d.tls.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA of the store: %s has no certificate", t.CA)
		}
	}
	if t.Cert != "" {
		if _, err := keyPair(t); err != nil {
			return nil, fmt.Errorf("certificate for the store: %w", err)
		}
		// The files are read for each connection, because they may have been renewed.
		d.tls.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := keyPair(t)
			return &c, err
		}
	}
	return d, nil
}

// maxCertificates is the maximum number of bytes in a file of certificates.
const maxCertificates = 16 << 20

// keyPair reads the certificate of this server and its key from the files that t names.
func keyPair(t *TLS) (tls.Certificate, error) {
	cert, err := optionfile.Read(t.Cert, maxCertificates)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := optionfile.Read(t.Key, maxCertificates)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// dial connects to addr, with TLS if that is configured. It never returns an error: a failed
// attempt returns a connection on which every read and write fails with a [*dialError]. After an
// error the client library would try again, for longer than a caller waits, and after some
// failures would not try at all.
func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.connect(ctx, network, addr)
	if err != nil {
		return failedConn{&dialError{err}}, nil
	}
	if d.tls == nil {
		return guard(conn), nil
	}
	c := d.tls
	if c.ServerName == "" {
		c = c.Clone()
		c.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secured := tls.Client(conn, c)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return failedConn{&dialError{fmt.Errorf("TLS: %w", err)}}, nil
	}
	return guard(secured), nil
}

// failedConn replaces a connection that could not be made. Reads and writes return err.
type failedConn struct{ err error }

func (c failedConn) Read([]byte) (int, error)       { return 0, c.err }
func (c failedConn) Write([]byte) (int, error)      { return 0, c.err }
func (failedConn) Close() error                     { return nil }
func (failedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (failedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (failedConn) SetDeadline(time.Time) error      { return nil }
func (failedConn) SetReadDeadline(time.Time) error  { return nil }
func (failedConn) SetWriteDeadline(time.Time) error { return nil }

// quiet keeps the client library from writing to standard error. The library's errors have the
// same information.
var quiet = sync.OnceFunc(logging.Disable)

// newClient returns a client of the node at addr. The client connects when it is used, and logs in
// with the login who. timeout is the time limit of each read and write.
func newClient(addr string, who Login, d *dialer, timeout time.Duration) *redis.Client {
	quiet()
	return redis.NewClient(&redis.Options{
		Addr: addr, Username: who.User, Password: who.Password,
		Dialer: d.dial, DialTimeout: d.timeout, DialerRetries: 1,
		ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
		ContextTimeoutEnabled: true, // for Eval: the other requests have contexts without a deadline, or a late one
		// The engine decides whether to send a request again, since it knows whether that is
		// safe.
		MaxRetries: -1,
		// RESP2 and no name of the client: every engine supports that and allows it to every user.
		Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		PoolSize:                 connections, PipelinePoolSize: -1,
		ReadBufferSize: bufferSize, WriteBufferSize: bufferSize,
		ConnMaxIdleTime: 5 * time.Minute,
	})
}

// newSentinel returns a client of the Sentinel at addr. The client connects when it is used, and
// logs in with the login who.
func newSentinel(addr string, who Login, d *dialer) *redis.SentinelClient {
	quiet()
	return redis.NewSentinelClient(&redis.Options{
		Addr: addr, Username: who.User, Password: who.Password,
		Dialer: d.dial, DialTimeout: d.timeout, DialerRetries: 1,
		ReadTimeout: controlTimeout / 2, WriteTimeout: controlTimeout / 2, MaxRetries: -1,
		Protocol: 2, DisableIdentity: true, PoolSize: 2, PipelinePoolSize: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

var errClosed = errors.New("the store is being closed")
