package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/inproc"
)

// securePort is the TLS port of the primaries of these tests.
const securePort = "6380"

// secure is a primary that requires client certificates on its TLS port.
type secure struct {
	*inproc.Node
	authority *certtest.Authority
}

func startSecure(t *testing.T, w *inproc.World) *secure {
	t.Helper()
	authority := certtest.New(t)
	pair := authority.Issue(t, certtest.Subject{Name: "server"})
	return &secure{w.Start("--tls-port", securePort, "--tls-auth-clients", "yes",
		"--tls-cert-file", pair.CertFile, "--tls-key-file", pair.KeyFile, "--tls-ca-cert-file", authority.File), authority}
}

// followSecure makes a node follow a primary at its TLS port.
func followSecure(t *testing.T, n *inproc.Node, primary *secure) {
	t.Helper()
	require.Contains(t, n.Dial().Do("REPLICAOF", primary.Host, securePort), "+OK")
}

// awaitReplication waits until a field of INFO replication contains words.
func awaitReplication(t *testing.T, w *inproc.World, n *inproc.Node, field, words string) {
	t.Helper()
	w.Until(field+" has "+words, 3*time.Millisecond, time.Minute, func() bool { return strings.Contains(n.Replication()[field], words) })
}

// TestReplicationSpeaksTLS: a replica with a certificate follows a primary that requires one. It
// gets earlier and later writes.
func TestReplicationSpeaksTLS(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary := startSecure(t, w)
		c := primary.Dial()
		require.Equal(t, inproc.OK, c.Do("SET", "before", "the copy"))
		mine := primary.authority.Issue(t, certtest.Subject{Name: "replica"})
		replica := w.Start("--tls-replication", "yes", "--tls-cert-file", mine.CertFile, "--tls-key-file", mine.KeyFile,
			"--tls-ca-cert-file", primary.authority.File)
		followSecure(t, replica, primary)
		awaitReplication(t, w, replica, "master_link_status", "up")
		require.Equal(t, inproc.Bulk("the copy"), replica.Dial().Do("GET", "before"))
		require.Equal(t, inproc.OK, c.Do("SET", "behind", "the copy"))
		require.Equal(t, ":1\r\n", c.Do("WAIT", "1", "0"))
		require.Equal(t, inproc.Bulk("the copy"), replica.Dial().Do("GET", "behind"))
	})
}

// TestReplicationWithoutTheRightCertificate: if the primary does not accept the replica, or the
// replica the primary, the replica reports the reason, and follows as soon as the options are
// right.
func TestReplicationWithoutTheRightCertificate(t *testing.T) {
	type pair = certtest.Pair
	for name, c := range map[string]struct {
		flags func(primary, stranger *certtest.Authority, right, expired, wrong pair) []string
		why   string
		log   string // of the primary, empty if it gets no connection
	}{
		"no certificate": {
			func(primary, _ *certtest.Authority, _, _, _ pair) []string {
				return []string{"--tls-ca-cert-file", primary.File}
			},
			"no tls-cert-file configured", "",
		},
		"a certificate of another authority": {
			func(primary, _ *certtest.Authority, _, _, wrong pair) []string { return with(wrong, primary) },
			"remote error: tls: unknown certificate authority", "certificate signed by unknown authority",
		},
		"an expired certificate": {
			func(primary, _ *certtest.Authority, _, expired, _ pair) []string { return with(expired, primary) },
			"remote error: tls: expired certificate", "certificate has expired",
		},
		"another authority for the primary": {
			func(_, stranger *certtest.Authority, right, _, _ pair) []string { return with(right, stranger) },
			"certificate signed by unknown authority", "remote error: tls: bad certificate",
		},
		"no TLS": {
			func(primary, _ *certtest.Authority, right, _, _ pair) []string {
				return append(with(right, primary), "--tls-replication", "no")
			},
			"this port speaks TLS", "does not look like a TLS handshake",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				primary, stranger := startSecure(t, w), certtest.New(t)
				right := primary.authority.Issue(t, certtest.Subject{Name: "replica"})
				expired := primary.authority.Issue(t, certtest.Subject{Name: "replica", Expired: true})
				wrong := stranger.Issue(t, certtest.Subject{Name: "replica"})
				replica := w.Start(append([]string{"--tls-replication", "yes"}, c.flags(primary.authority, stranger, right, expired, wrong)...)...)
				followSecure(t, replica, primary)
				awaitReplication(t, w, replica, "cell_repl_error", c.why)
				require.Equal(t, "down", replica.Replication()["master_link_status"])
				require.Contains(t, replica.Log.String(), c.why)
				require.Contains(t, primary.Log.String(), c.log)

				require.Equal(t, inproc.OK, replica.Dial().Do("CONFIG", "SET", "tls-replication", "yes",
					"tls-cert-file", right.CertFile, "tls-key-file", right.KeyFile, "tls-ca-cert-file", primary.authority.File))
				awaitReplication(t, w, replica, "master_link_status", "up")
				require.Empty(t, replica.Replication()["cell_repl_error"])
			})
		})
	}
}

// with returns the options for a certificate, and for the authority of the other end.
func with(p certtest.Pair, authority *certtest.Authority) []string {
	return []string{"--tls-cert-file", p.CertFile, "--tls-key-file", p.KeyFile, "--tls-ca-cert-file", authority.File}
}
