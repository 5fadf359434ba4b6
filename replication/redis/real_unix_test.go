//go:build real && unix

package redis_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/inproc"
)

// real is a complete server beside a Redis or Valkey, with helpers for its replication.
type real struct {
	*inproc.Served
	t testing.TB
}

// startBesideReal runs a server with command-line options until the test ends.
func startBesideReal(t testing.TB, kind string, options ...string) *real {
	t.Helper()
	return &real{inproc.ServeTimed(t, kind, options...), t}
}

// place returns the host and the port of the server.
func (r *real) place() (host, port string) {
	host, port, err := net.SplitHostPort(r.Addr().String())
	require.NoError(r.t, err)
	return host, port
}

// replication returns the fields of INFO replication.
func (r *real) replication() map[string]string {
	r.t.Helper()
	c := r.Dial()
	defer c.Close()
	fields := map[string]string{}
	for line := range strings.SplitSeq(c.Do("INFO", "replication"), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// follow makes r a replica of another server, and waits until it has the state.
func (r *real) follow(primary *real) {
	r.t.Helper()
	host, port := primary.place()
	require.Contains(r.t, r.Dial().Do("REPLICAOF", host, port), "+OK")
	inproc.Await(r.t, "the link is up", func() bool {
		is := r.replication()
		return is["master_port"] == port && is["master_link_status"] == "up"
	})
}

// agree waits until a replica is at the offset of r, and compares their keys.
func (r *real) agree(replica *real) {
	r.t.Helper()
	inproc.Await(r.t, "the replica has everything", func() bool {
		is, has := r.replication(), replica.replication()
		return is["master_replid"] == has["master_replid"] && is["master_repl_offset"] == has["slave_repl_offset"]
	})
	require.Equal(r.t, r.state(), replica.state())
}

// state returns all keys and their values.
func (r *real) state() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	require.NoError(r.t, r.Keyspace().Snapshot(func(db int, key []byte, e entry.Entry) {
		all[fmt.Sprintf("%d/%s", db, key)] = fmt.Sprintf("%d %d %x", e.Kind, e.Expiry, e.Value)
	}, func() error { return nil }))
	return all
}
