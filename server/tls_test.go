package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/server"
)

// tlsServer is a server with a port for TLS and one without.
type tlsServer struct {
	*server.Server
	t         testing.TB
	authority *certtest.Authority
	pair      certtest.Pair
	log       *logBuffer
	plain     string
	secure    string
}

// startTLS runs a server that asks for no certificate, unless flags say otherwise.
func startTLS(t testing.TB, kind string, flags ...string) *tlsServer {
	t.Helper()
	s := &tlsServer{t: t, authority: certtest.New(t), log: &logBuffer{}}
	s.pair = s.authority.Issue(t, certtest.Subject{Name: "server"})
	plain, secure := freeport.Choose(), freeport.Choose()
	s.plain, s.secure = net.JoinHostPort("127.0.0.1", plain), net.JoinHostPort("127.0.0.1", secure)
	c, err := config.Load(append([]string{
		"--bind", "127.0.0.1", "--port", plain, "--tls-port", secure, "--transport", kind, "--io-threads", "2", "--dir", t.TempDir(),
		"--tls-cert-file", s.pair.CertFile, "--tls-key-file", s.pair.KeyFile, "--tls-ca-cert-file", s.authority.File, "--tls-auth-clients", "no",
	}, flags...), nil)
	require.NoError(t, err)
	s.Server, err = server.New(c, server.Options{Log: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		s.Stop()
		require.NoError(t, <-done)
	})
	return s
}

// connect shakes hands.
func (s *tlsServer) connect(conf *tls.Config) (*client, error) {
	nc, err := tls.Dial("tcp", s.secure, conf)
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() { _ = nc.Close() }) // the server may have hung up
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	return &client{t: s.t, Conn: nc, r: bufio.NewReader(nc)}, nil
}

// dial is connect for a client that is welcome.
func (s *tlsServer) dial(conf *tls.Config) *client {
	s.t.Helper()
	c, err := s.connect(conf)
	require.NoError(s.t, err)
	return c
}

// served reports whether such a client gets an answer. With TLS 1.3 a client learns only
// from its first read that its certificate is refused.
func (s *tlsServer) served(conf *tls.Config) bool {
	s.t.Helper()
	c, err := s.connect(conf)
	if err != nil {
		return false
	}
	if _, err := io.WriteString(c, "PING\r\n"); err != nil {
		return false
	}
	line, err := c.r.ReadString('\n')
	return err == nil && line == "+PONG\r\n"
}

func limited(conf *tls.Config, change func(*tls.Config)) *tls.Config {
	conf = conf.Clone()
	change(conf)
	return conf
}

// TestTLSServesNoClientWithoutTLS: a client that does not speak TLS is told so, and a client
// that does, on the port without, too.
func TestTLSServesNoClientWithoutTLS(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		s := startTLS(t, kind)
		nc, err := net.Dial("tcp", s.secure)
		require.NoError(t, err)
		defer nc.Close()
		_, err = io.WriteString(nc, "PING\r\n")
		require.NoError(t, err)
		answer, err := io.ReadAll(nc)
		require.NoError(t, err)
		require.Contains(t, string(answer), "-ERR this port speaks TLS")

		_, err = tls.Dial("tcp", s.plain, s.authority.Client())
		require.ErrorAs(t, err, new(tls.RecordHeaderError))
		eventually(t, "both are logged", func() bool {
			return strings.Contains(s.log.String(), "does not look like a TLS handshake") && strings.Contains(s.log.String(), "speaks TLS to a port without it")
		})
		require.Equal(t, "+PONG\r\n", s.dial(s.authority.Client()).do("PING"))
	})
}

// TestTLSAuthClients: with yes, no and optional a client has to show a certificate, need not,
// and may; a wrong one is refused unless nobody looks. CONFIG SET changes it.
func TestTLSAuthClients(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		s := startTLS(t, kind)
		right := s.authority.Client(s.authority.Issue(t, certtest.Subject{Name: "app"}))
		expired := s.authority.Client(s.authority.Issue(t, certtest.Subject{Name: "app", Expired: true}))
		other := s.authority.Client(certtest.New(t).Issue(t, certtest.Subject{Name: "app"}))
		none := s.authority.Client()
		admin := s.dial(none)
		for _, want := range []struct {
			auth                        string
			right, none, other, expired bool
		}{{"yes", true, false, false, false}, {"optional", true, true, false, false}, {"no", true, true, true, true}} {
			require.Equal(t, okReply, admin.do("CONFIG", "SET", "tls-auth-clients", want.auth))
			require.Equal(t, want.right, s.served(right), want.auth)
			require.Equal(t, want.none, s.served(none), want.auth)
			require.Equal(t, want.other, s.served(other), want.auth)
			require.Equal(t, want.expired, s.served(expired), want.auth)
		}
	})
}

// TestTLSProtocols: only the versions are offered that the operator names, and none before 1.2.
func TestTLSProtocols(t *testing.T) {
	s := startTLS(t, "auto")
	admin := s.dial(s.authority.Client())
	offers := func(version uint16) bool {
		return s.served(limited(s.authority.Client(), func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }))
	}
	for protocols, want := range map[string][2]bool{"": {true, true}, "TLSv1.2": {true, false}, "TLSv1.3": {false, true}, "tlsv1.3 TLSv1.2": {true, true}} {
		require.Equal(t, okReply, admin.do("CONFIG", "SET", "tls-protocols", protocols))
		require.Equal(t, want[0], offers(tls.VersionTLS12), protocols)
		require.Equal(t, want[1], offers(tls.VersionTLS13), protocols)
		require.False(t, offers(tls.VersionTLS11), protocols)
		require.False(t, offers(tls.VersionTLS10), protocols)
	}
	require.Contains(t, admin.do("CONFIG", "SET", "tls-protocols", "TLSv1.1"), "not secure")
	require.Contains(t, admin.do("CONFIG", "SET", "tls-protocols", "SSLv3"), "none of")
}

// TestTLSCiphers: a list of OpenSSL selects cipher suites of TLS 1.2, and one that selects
// none is refused.
func TestTLSCiphers(t *testing.T) {
	s := startTLS(t, "auto")
	admin := s.dial(s.authority.Client())
	suite := func() string {
		conf := limited(s.authority.Client(), func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
		c := s.dial(conf)
		return tls.CipherSuiteName(c.Conn.(*tls.Conn).ConnectionState().CipherSuite)
	}
	for _, c := range []struct{ list, want string }{
		{"ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
		{"ECDHE-ECDSA-AES256-GCM-SHA384:UNKNOWN", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
		{"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"},
		{"ECDHE-ECDSA-AES128-SHA", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"},
		{"DEFAULT:@SECLEVEL=2:!ECDHE-ECDSA-AES128-GCM-SHA256:-ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
	} {
		require.Equal(t, okReply, admin.do("CONFIG", "SET", "tls-ciphers", c.list))
		require.Equal(t, c.want, suite(), c.list)
	}
	require.Contains(t, admin.do("CONFIG", "SET", "tls-ciphers", "RC4-MD5:NULL"), "selects none")
}

// TestTLSCertificateNamesUser: the common name or a URI of a certificate makes its client
// that user, if there is such a user and it is on.
func TestTLSCertificateNamesUser(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		s := startTLS(t, kind, "--tls-auth-clients", "optional", "--tls-auth-clients-user", "CN")
		admin := s.dial(s.authority.Client())
		for user, on := range map[string]string{"app": "on", "away": "off", "urn:app:2": "on"} {
			require.Equal(t, okReply, admin.do("ACL", "SETUSER", user, on, ">p", "~*", "+@all"))
		}
		whoami := func(subject certtest.Subject) string {
			return s.dial(s.authority.Client(s.authority.Issue(t, subject))).do("ACL", "WHOAMI")
		}
		require.Equal(t, bulk("app"), whoami(certtest.Subject{Name: "app"}))
		require.Equal(t, bulk("default"), whoami(certtest.Subject{Name: "away"}), "it is off")
		require.Equal(t, bulk("default"), whoami(certtest.Subject{Name: "nobody"}))
		require.Equal(t, bulk("default"), admin.do("ACL", "WHOAMI"), "no certificate")
		require.Equal(t, okReply, admin.do("CONFIG", "SET", "tls-auth-clients-user", "URI"))
		require.Equal(t, bulk("urn:app:2"), whoami(certtest.Subject{Name: "app", URIs: []string{"urn:app:1", "urn:app:2"}}))
		require.Equal(t, bulk("default"), whoami(certtest.Subject{Name: "app"}))
		require.Equal(t, okReply, admin.do("CONFIG", "SET", "tls-auth-clients-user", "off"))
		require.Equal(t, bulk("default"), whoami(certtest.Subject{Name: "app"}))
		// A certificate that nobody has checked names nobody.
		require.Equal(t, okReply, admin.do("CONFIG", "SET", "tls-auth-clients-user", "CN", "tls-auth-clients", "no"))
		require.Equal(t, bulk("default"), whoami(certtest.Subject{Name: "app"}))
	})
}

// TestTLSReloadDropsNobody: new certificates are in force at once for new connections, old
// ones go on, and nobody who is not welcome any more comes in by an old ticket.
func TestTLSReloadDropsNobody(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		s := startTLS(t, kind, "--tls-auth-clients", "yes")
		app := s.authority.Issue(t, certtest.Subject{Name: "app"})
		conf := s.authority.Client(app)
		clients := make([]*client, 200)
		for i := range clients {
			clients[i] = s.dial(conf)
			require.Equal(t, "+PONG\r\n", clients[i].do("PING"))
		}
		resumed := limited(conf, func(c *tls.Config) { c.ClientSessionCache = tls.NewLRUClientSessionCache(4) })
		for _, want := range []bool{false, true} {
			c := s.dial(resumed)
			require.Equal(t, "+PONG\r\n", c.do("PING"))
			require.Equal(t, want, c.Conn.(*tls.Conn).ConnectionState().DidResume)
		}

		// Another authority for clients, and another certificate in the same files.
		second := certtest.New(t)
		renewed := s.authority.Issue(t, certtest.Subject{Name: "renewed"})
		copyFile(t, renewed.CertFile, s.pair.CertFile)
		copyFile(t, renewed.KeyFile, s.pair.KeyFile)
		copyFile(t, second.File, s.authority.File)
		for i, c := range clients {
			if i%2 == 0 {
				c.command("INCR", "calls") // some are busy meanwhile
			}
		}
		require.Equal(t, okReply, clients[1].do("CONFIG", "RELOAD"))
		for i, c := range clients {
			if i%2 == 0 {
				c.reply()
			}
			require.Equal(t, "+PONG\r\n", c.do("PING"))
		}
		require.False(t, s.served(resumed), "an old ticket")
		require.False(t, s.served(conf))
		trusted := limited(conf, func(c *tls.Config) {
			c.Certificates = []tls.Certificate{second.Issue(t, certtest.Subject{Name: "app"}).TLS}
		})
		require.Equal(t, "renewed", s.dial(trusted).Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName)
	})
}

// TestTLSFaultsChangeNothing: a certificate that cannot be used is refused by CONFIG SET, by
// a reload and at the start, each with the reason, and what was in force stays so.
func TestTLSFaultsChangeNothing(t *testing.T) {
	s := startTLS(t, "auto")
	admin := s.dial(s.authority.Client())
	other := s.authority.Issue(t, certtest.Subject{Name: "other"})
	before := admin.do("CONFIG", "GET", "tls-*")
	for want, pairs := range map[string][]string{
		"no such file":                   {"tls-cert-file", "/nowhere.crt"},
		"private key does not match":     {"tls-key-file", other.KeyFile},
		"no tls-key-file configured":     {"tls-key-file", ""},
		"has no certificate":             {"tls-ca-cert-file", other.KeyFile},
		"tls-ca-cert-dir must be specif": {"tls-ca-cert-file", "", "tls-auth-clients", "yes"},
	} {
		require.Contains(t, admin.do(append([]string{"CONFIG", "SET"}, pairs...)...), want)
		require.Equal(t, before, admin.do("CONFIG", "GET", "tls-*"))
		require.True(t, s.served(s.authority.Client()))
	}
	require.Equal(t, okReply, admin.do("CONFIG", "SET", "tls-cert-file", other.CertFile, "tls-key-file", other.KeyFile), "both at once fit")
	require.NoError(t, os.WriteFile(other.KeyFile, []byte("nonsense"), 0o600))
	require.Contains(t, admin.do("CONFIG", "RELOAD"), other.KeyFile)
	require.True(t, s.served(s.authority.Client()))

	_, err := newServer(t, "--port", "0", "--tls-port", freeport.Choose(), "--tls-cert-file", other.CertFile, "--dir", t.TempDir())
	require.ErrorContains(t, err, "no tls-key-file configured")
	require.ErrorContains(t, err, "tls-ca-cert-dir must be specified")
}

// TestTLSKeyWithPassword: encrypted keys as OpenSSL writes them are read with the password,
// which is shown to nobody who must not change options, and is in no log.
func TestTLSKeyWithPassword(t *testing.T) {
	s := startTLS(t, "auto")
	admin := s.dial(s.authority.Client())
	_, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed, which encrypts the keys")
	}
	for name, args := range map[string][]string{
		"aes256":   {"pkcs8", "-topk8", "-v2", "aes-256-cbc"},
		"aes128":   {"pkcs8", "-topk8", "-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA1"},
		"des3":     {"pkcs8", "-topk8", "-v2", "des3", "-v2prf", "hmacWithSHA512"},
		"older":    {"ec", "-aes256"},
		"older192": {"ec", "-aes192"},
	} {
		file := filepath.Join(t.TempDir(), name)
		args = append(args, "-in", s.pair.KeyFile, "-out", file, "-passout", "pass:horse-canary")
		out, err := exec.CommandContext(t.Context(), "openssl", args...).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, admin.do("CONFIG", "SET", "tls-key-file", file, "tls-key-file-pass", ""), "set tls-key-file-pass", name)
		require.Contains(t, admin.do("CONFIG", "SET", "tls-key-file", file, "tls-key-file-pass", "donkey"), "does not fit", name)
		require.Equal(t, okReply, admin.do("CONFIG", "SET", "tls-key-file", file, "tls-key-file-pass", "horse-canary"), name)
		require.True(t, s.served(s.authority.Client()))
	}
	require.NotContains(t, s.log.String(), "horse-canary")
	file := filepath.Join(t.TempDir(), "scrypt")
	out, err := exec.CommandContext(t.Context(), "openssl", "pkcs8", "-topk8", "-scrypt", "-in", s.pair.KeyFile, "-out", file, "-passout", "pass:p").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, admin.do("CONFIG", "SET", "tls-key-file", file, "tls-key-file-pass", "p"), "not supported")
}

// TestTLSCountsInBounds: who has not finished the handshake is a client, counted by
// maxclients and max-clients-per-ip, and one too many is hung up on.
func TestTLSCountsInBounds(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		s := startTLS(t, kind, "--maxclients", "3")
		a, b := s.dial(s.authority.Client()), s.dial(s.authority.Client())
		require.Equal(t, "+PONG\r\n", a.do("PING"))
		half, err := net.Dial("tcp", s.secure) // says nothing
		require.NoError(t, err)
		defer half.Close()
		eventually(t, "three clients", func() bool { return a.info("connected_clients") == "3" })
		require.False(t, s.served(s.authority.Client()))
		require.NoError(t, half.Close())
		eventually(t, "room for one more", func() bool { return s.served(s.authority.Client()) })
		require.Equal(t, "+PONG\r\n", b.do("PING"))
	})
}

// TestTLSMemoryOfClients: what TLS keeps for a client, the buffer that records are read into,
// counts as memory of clients.
func TestTLSMemoryOfClients(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		s := startTLS(t, kind)
		// By itself a client of Go begins with short records.
		a := s.dial(limited(s.authority.Client(), func(c *tls.Config) { c.DynamicRecordSizingDisabled = true }))
		require.Equal(t, okReply, a.do("SET", "k", strings.Repeat("v", 15<<10)))
		eventually(t, "counted", func() bool {
			n, err := strconv.Atoi(a.info("mem_clients_normal"))
			return err == nil && n >= 14<<10
		})
	})
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, content, 0o600))
}
