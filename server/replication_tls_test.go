package server_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
)

// followsTLS has f follow the port of a primary that speaks TLS.
func (f *fixture) followsTLS(primary *tlsServer) {
	f.t.Helper()
	host, port, err := net.SplitHostPort(primary.secure)
	require.NoError(f.t, err)
	require.Contains(f.t, f.dial().do("REPLICAOF", host, port), "+OK")
}

// awaitReplication waits for words in a field of INFO replication.
func (f *fixture) awaitReplication(field, words string) {
	f.t.Helper()
	eventually(f.t, field+" has "+words, func() bool { return strings.Contains(f.replication()[field], words) })
}

// TestReplicationSpeaksTLS: a replica with a certificate follows a primary that wants one. What was
// written there comes, and what is written later.
func TestReplicationSpeaksTLS(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		primary := startTLS(t, kind, "--tls-auth-clients", "yes")
		client := primary.dial(primary.authority.Client(primary.pair))
		require.Equal(t, "+OK\r\n", client.do("SET", "before", "the copy"))
		mine := primary.authority.Issue(t, certtest.Subject{Name: "replica"})
		replica := startStandby(t, kind, "--tls-replication", "yes", "--tls-cert-file", mine.CertFile, "--tls-key-file", mine.KeyFile,
			"--tls-ca-cert-file", primary.authority.File)
		replica.followsTLS(primary)
		replica.awaitReplication("master_link_status", "up")
		require.Equal(t, bulk("the copy"), replica.dial().do("GET", "before"))
		require.Equal(t, "+OK\r\n", client.do("SET", "behind", "the copy"))
		require.Equal(t, ":1\r\n", client.do("WAIT", "1", "0"))
		require.Equal(t, bulk("the copy"), replica.dial().do("GET", "behind"))
	})
}

// TestReplicationWithoutTheRightCertificate: a replica that the primary does not accept, or that
// does not accept the primary, says why, and follows as soon as the options are right.
func TestReplicationWithoutTheRightCertificate(t *testing.T) {
	primary := startTLS(t, "auto", "--tls-auth-clients", "yes")
	stranger := certtest.New(t)
	right := primary.authority.Issue(t, certtest.Subject{Name: "replica"})
	expired := primary.authority.Issue(t, certtest.Subject{Name: "replica", Expired: true})
	wrong := stranger.Issue(t, certtest.Subject{Name: "replica"})
	for name, c := range map[string]struct {
		flags []string
		why   string
		log   string // of the primary, empty if it hears nothing
	}{
		"no certificate": {
			[]string{"--tls-ca-cert-file", primary.authority.File},
			"no tls-cert-file configured", "",
		},
		"a certificate of another authority": {
			[]string{"--tls-cert-file", wrong.CertFile, "--tls-key-file", wrong.KeyFile, "--tls-ca-cert-file", primary.authority.File},
			"remote error: tls: unknown certificate authority", "certificate signed by unknown authority",
		},
		"an expired certificate": {
			[]string{"--tls-cert-file", expired.CertFile, "--tls-key-file", expired.KeyFile, "--tls-ca-cert-file", primary.authority.File},
			"remote error: tls: expired certificate", "certificate has expired",
		},
		"another authority for the primary": {
			[]string{"--tls-cert-file", right.CertFile, "--tls-key-file", right.KeyFile, "--tls-ca-cert-file", stranger.File},
			"certificate signed by unknown authority", "remote error: tls: bad certificate",
		},
		"no TLS": {
			[]string{"--tls-cert-file", right.CertFile, "--tls-key-file", right.KeyFile, "--tls-ca-cert-file", primary.authority.File, "--tls-replication", "no"},
			"this port speaks TLS", "does not look like a TLS handshake",
		},
	} {
		t.Run(name, func(t *testing.T) {
			replica := startStandby(t, "auto", append([]string{"--tls-replication", "yes"}, c.flags...)...)
			replica.followsTLS(primary)
			replica.awaitReplication("cell_repl_error", c.why)
			require.Equal(t, "down", replica.replication()["master_link_status"])
			eventually(t, "both log it", func() bool {
				return strings.Contains(replica.log.String(), c.why) && strings.Contains(primary.log.String(), c.log)
			})

			require.Equal(t, "+OK\r\n", replica.dial().do("CONFIG", "SET", "tls-replication", "yes",
				"tls-cert-file", right.CertFile, "tls-key-file", right.KeyFile, "tls-ca-cert-file", primary.authority.File))
			replica.awaitReplication("master_link_status", "up")
			require.Empty(t, replica.replication()["cell_repl_error"])
		})
	}
}
