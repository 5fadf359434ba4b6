package server_test

import (
	"crypto/tls"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/inproc"
)

func limited(conf *tls.Config, change func(*tls.Config)) *tls.Config {
	conf = conf.Clone()
	change(conf)
	return conf
}

// TestTLSAndPlainAreLogged: a client that uses TLS on the port without it, and one that does not on
// the TLS port, are logged.
func TestTLSAndPlainAreLogged(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS()
		s.DialPort(s.TLSPort).Send("PING\r\n")
		_, err := s.HandshakeAt(strconv.Itoa(inproc.Port), s.Authority.Client())
		require.ErrorAs(t, err, new(tls.RecordHeaderError))
		w.Settle()
		require.Contains(t, s.Log.String(), "does not look like a TLS handshake")
		require.Contains(t, s.Log.String(), "speaks TLS to a port without it")
		require.Equal(t, "+PONG\r\n", s.DialTLS(s.Authority.Client()).Do("PING"))
	})
}

// TestTLSAuthClients: with yes a client must present a certificate, with no it is not asked for
// one, and with optional it may. A wrong certificate is refused unless none is requested. CONFIG
// SET changes the option.
func TestTLSAuthClients(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS()
		right := s.Authority.Client(s.Authority.Issue(t, certtest.Subject{Name: "app"}))
		expired := s.Authority.Client(s.Authority.Issue(t, certtest.Subject{Name: "app", Expired: true}))
		other := s.Authority.Client(certtest.New(t).Issue(t, certtest.Subject{Name: "app"}))
		none := s.Authority.Client()
		admin := s.DialTLS(none)
		for _, want := range []struct {
			auth                        string
			right, none, other, expired bool
		}{{"yes", true, false, false, false}, {"optional", true, true, false, false}, {"no", true, true, true, true}} {
			require.Equal(t, inproc.OK, admin.Do("CONFIG", "SET", "tls-auth-clients", want.auth))
			require.Equal(t, want.right, s.Serves(right), want.auth)
			require.Equal(t, want.none, s.Serves(none), want.auth)
			require.Equal(t, want.other, s.Serves(other), want.auth)
			require.Equal(t, want.expired, s.Serves(expired), want.auth)
		}
	})
}

// TestTLSProtocols: the server offers only the configured versions, and none before 1.2.
func TestTLSProtocols(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS()
		admin := s.DialTLS(s.Authority.Client())
		offers := func(version uint16) bool {
			return s.Serves(limited(s.Authority.Client(), func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }))
		}
		for protocols, want := range map[string][2]bool{"": {true, true}, "TLSv1.2": {true, false}, "TLSv1.3": {false, true}, "tlsv1.3 TLSv1.2": {true, true}} {
			require.Equal(t, inproc.OK, admin.Do("CONFIG", "SET", "tls-protocols", protocols))
			require.Equal(t, want[0], offers(tls.VersionTLS12), protocols)
			require.Equal(t, want[1], offers(tls.VersionTLS13), protocols)
			require.False(t, offers(tls.VersionTLS11), protocols)
			require.False(t, offers(tls.VersionTLS10), protocols)
		}
		require.Contains(t, admin.Do("CONFIG", "SET", "tls-protocols", "TLSv1.1"), "not secure")
		require.Contains(t, admin.Do("CONFIG", "SET", "tls-protocols", "SSLv3"), "none of")
	})
}

// TestTLSCiphers: a cipher list of OpenSSL selects cipher suites of TLS 1.2, and a list that
// selects none is refused.
func TestTLSCiphers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS()
		admin := s.DialTLS(s.Authority.Client())
		suite := func() string {
			conf := limited(s.Authority.Client(), func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
			c := s.DialTLS(conf)
			return tls.CipherSuiteName(c.Conn.(*tls.Conn).ConnectionState().CipherSuite)
		}
		for _, c := range []struct{ list, want string }{
			{"ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
			{"ECDHE-ECDSA-AES256-GCM-SHA384:UNKNOWN", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
			{"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"},
			{"ECDHE-ECDSA-AES128-SHA", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"},
			{"DEFAULT:@SECLEVEL=2:!ECDHE-ECDSA-AES128-GCM-SHA256:-ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
		} {
			require.Equal(t, inproc.OK, admin.Do("CONFIG", "SET", "tls-ciphers", c.list))
			require.Equal(t, c.want, suite(), c.list)
		}
		require.Contains(t, admin.Do("CONFIG", "SET", "tls-ciphers", "RC4-MD5:NULL"), "selects none")
	})
}

// TestTLSCertificateNamesUser: the common name or a URI of a certificate selects the client's user,
// if that user exists and is on.
func TestTLSCertificateNamesUser(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS("--tls-auth-clients", "optional", "--tls-auth-clients-user", "CN")
		admin := s.DialTLS(s.Authority.Client())
		for user, on := range map[string]string{"app": "on", "away": "off", "urn:app:2": "on"} {
			require.Equal(t, inproc.OK, admin.Do("ACL", "SETUSER", user, on, ">p", "~*", "+@all"))
		}
		whoami := func(subject certtest.Subject) string {
			return s.DialTLS(s.Authority.Client(s.Authority.Issue(t, subject))).Do("ACL", "WHOAMI")
		}
		require.Equal(t, inproc.Bulk("app"), whoami(certtest.Subject{Name: "app"}))
		require.Equal(t, inproc.Bulk("default"), whoami(certtest.Subject{Name: "away"}), "it is off")
		require.Equal(t, inproc.Bulk("default"), whoami(certtest.Subject{Name: "nobody"}))
		require.Equal(t, inproc.Bulk("default"), admin.Do("ACL", "WHOAMI"), "no certificate")
		require.Equal(t, inproc.OK, admin.Do("CONFIG", "SET", "tls-auth-clients-user", "URI"))
		require.Equal(t, inproc.Bulk("urn:app:2"), whoami(certtest.Subject{Name: "app", URIs: []string{"urn:app:1", "urn:app:2"}}))
		require.Equal(t, inproc.Bulk("default"), whoami(certtest.Subject{Name: "app"}))
		require.Equal(t, inproc.OK, admin.Do("CONFIG", "SET", "tls-auth-clients-user", "off"))
		require.Equal(t, inproc.Bulk("default"), whoami(certtest.Subject{Name: "app"}))
		// A certificate that was not verified selects no user.
		require.Equal(t, inproc.OK, admin.Do("CONFIG", "SET", "tls-auth-clients-user", "CN", "tls-auth-clients", "no"))
		require.Equal(t, inproc.Bulk("default"), whoami(certtest.Subject{Name: "app"}))
	})
}

// TestTLSReloadDropsNobody: new certificates apply at once to new connections, existing connections
// continue, and a client that is no longer accepted cannot use an old session ticket.
func TestTLSReloadDropsNobody(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS("--tls-auth-clients", "yes")
		app := s.Authority.Issue(t, certtest.Subject{Name: "app"})
		conf := s.Authority.Client(app)
		clients := make([]*inproc.Client, 50)
		for i := range clients {
			clients[i] = s.DialTLS(conf)
			require.Equal(t, "+PONG\r\n", clients[i].Do("PING"))
		}
		resumed := limited(conf, func(c *tls.Config) { c.ClientSessionCache = tls.NewLRUClientSessionCache(4) })
		for _, want := range []bool{false, true} {
			c := s.DialTLS(resumed)
			require.Equal(t, "+PONG\r\n", c.Do("PING"))
			require.Equal(t, want, c.Conn.(*tls.Conn).ConnectionState().DidResume)
		}

		// Another authority for clients, and another certificate in the same files.
		second := certtest.New(t)
		renewed := s.Authority.Issue(t, certtest.Subject{Name: "renewed"})
		copyFile(t, renewed.CertFile, s.Pair.CertFile)
		copyFile(t, renewed.KeyFile, s.Pair.KeyFile)
		copyFile(t, second.File, s.Authority.File)
		for i, c := range clients {
			if i%2 == 0 {
				c.Command("INCR", "calls") // some commands are running meanwhile
			}
		}
		require.Equal(t, inproc.OK, clients[1].Do("CONFIG", "RELOAD"))
		for i, c := range clients {
			if i%2 == 0 {
				c.Reply()
			}
			require.Equal(t, "+PONG\r\n", c.Do("PING"))
		}
		require.False(t, s.Serves(resumed), "an old ticket")
		require.False(t, s.Serves(conf))
		trusted := limited(conf, func(c *tls.Config) {
			c.Certificates = []tls.Certificate{second.Issue(t, certtest.Subject{Name: "app"}).TLS}
		})
		require.Equal(t, "renewed", s.DialTLS(trusted).Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName)
	})
}

// TestTLSFaultsChangeNothing: a certificate that cannot be used is refused by CONFIG SET, by a
// reload and at the start, each with the reason, and the present configuration stays.
func TestTLSFaultsChangeNothing(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS()
		admin := s.DialTLS(s.Authority.Client())
		other := s.Authority.Issue(t, certtest.Subject{Name: "other"})
		before := admin.Do("CONFIG", "GET", "tls-*")
		for want, pairs := range map[string][]string{
			"no such file":                   {"tls-cert-file", "/nowhere.crt"},
			"private key does not match":     {"tls-key-file", other.KeyFile},
			"no tls-key-file configured":     {"tls-key-file", ""},
			"has no certificate":             {"tls-ca-cert-file", other.KeyFile},
			"tls-ca-cert-dir must be specif": {"tls-ca-cert-file", "", "tls-auth-clients", "yes"},
		} {
			require.Contains(t, admin.Do(append([]string{"CONFIG", "SET"}, pairs...)...), want)
			require.Equal(t, before, admin.Do("CONFIG", "GET", "tls-*"))
			require.True(t, s.Serves(s.Authority.Client()))
		}
		require.Equal(t, inproc.OK, admin.Do("CONFIG", "SET", "tls-cert-file", other.CertFile, "tls-key-file", other.KeyFile), "both at once fit")
		require.NoError(t, os.WriteFile(other.KeyFile, []byte("nonsense"), 0o600))
		require.Contains(t, admin.Do("CONFIG", "RELOAD"), other.KeyFile)
		require.True(t, s.Serves(s.Authority.Client()))

		err := w.Node(nil, "--tls-port", "6380", "--tls-cert-file", other.CertFile).Run()
		require.ErrorContains(t, err, "no tls-key-file configured")
		require.ErrorContains(t, err, "tls-ca-cert-dir must be specified")
	})
}

// TestTLSCountsInBounds: a client that has not finished the handshake counts for maxclients and
// max-clients-per-ip, and a connection beyond them is closed.
func TestTLSCountsInBounds(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartTLS("--maxclients", "3")
		a, b := s.DialTLS(s.Authority.Client()), s.DialTLS(s.Authority.Client())
		require.Equal(t, "+PONG\r\n", a.Do("PING"))
		half := s.DialPort(s.TLSPort) // sends nothing
		w.Settle()
		require.Equal(t, "3", a.Info("connected_clients"))
		require.False(t, s.Serves(s.Authority.Client()))
		require.NoError(t, half.Close())
		w.Settle()
		require.True(t, s.Serves(s.Authority.Client()), "room for one more")
		require.Equal(t, "+PONG\r\n", b.Do("PING"))
	})
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, content, 0o600))
}
