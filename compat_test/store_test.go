package compat_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/script"
	"github.com/cellserver/cellserver/keyspace/entry"
)

// ownKeyspace are the sections that show something of a keyspace, beyond commands that are
// not served where the keys are elsewhere.
var ownKeyspace = map[string]string{
	"cellserver/errors/fewer databases":                   oneDatabase,
	"cellserver/errors/memory is bounded":                 "maxmemory bounds the keys of a keyspace",
	"cellserver/inspect/rl.top":                           oneDatabase,
	"cellserver/inspect/where memory goes":                "it counts the keys of a keyspace",
	"redis-cell/keys/databases":                           oneDatabase,
	"redis/client/info":                                   oneDatabase,
	"redis/connection/a database belongs to a connection": oneDatabase,
	"redis/connection/select":                             oneDatabase,
	"redis/keys/flushdb":                                  oneDatabase,
	"redis/server/config get":                             oneDatabase,
	"redis/server/info keyspace":                          "it counts the keys of a keyspace",
	"redis/transaction/select inside a transaction":       oneDatabase,
}

const oneDatabase = "there is one database"

// TestScriptsWithAStore: a server whose keys are elsewhere says what one with a keyspace
// says, in all conversations that do with the commands it serves.
func TestScriptsWithAStore(t *testing.T) {
	out := unserved(t)
	played, seen := 0, map[string]bool{}
	for _, s := range loadScripts(t, "cellserver") {
		for _, section := range s.Sections {
			name := s.Name + "/" + section.Title
			if seen[name] = true; ownKeyspace[name] != "" {
				continue
			}
			for _, proto := range section.Protocols {
				if out.isUsedBy(section, proto) {
					continue
				}
				played++
				t.Run(s.Name+"/"+runName(section, proto), func(t *testing.T) {
					t.Parallel()
					playSection(t, s, section, proto, withStore(t, section, transports[proto]), nil)
				})
			}
		}
	}
	for name := range ownKeyspace {
		require.True(t, seen[name], name)
	}
	t.Logf("%d sections do with what is served with a store", played)
	require.Greater(t, played, 300)
}

// unserved are the commands that are not served where the keys are elsewhere.
func unserved(t *testing.T) *leftOut {
	t.Helper()
	served, err := commands.NewStoreTable(nil)
	require.NoError(t, err)
	o := &leftOut{table: commands.NewTable(), names: map[string]bool{}}
	for _, c := range o.table.All() {
		if served.Find([]byte(c.Name)) == nil {
			o.names[c.Name] = true
		}
	}
	return o
}

// withStore starts a server whose keys are elsewhere, for one section.
func withStore(t *testing.T, section *script.Section, transport string) script.Target {
	t.Helper()
	options := []string{"--transport", transport, "--dir", t.TempDir(), "--store", "redis://127.0.0.1:1"}
	for _, option := range section.Config {
		options = append(options, "--"+option[0], option[1])
	}
	s, double := inproc.StartWithStore(t, scriptStart, options...)
	kinds := map[string]entry.Kind{"string": entry.String, "list": entry.List}
	return script.Target{
		Dial:  func() (net.Conn, error) { return net.Dial("tcp", s.Addr().String()) },
		Clock: s.Clock,
		Put: func(kind, key, value string, ttl time.Duration) error {
			return double.Put(key, kinds[kind], value, ttl)
		},
	}
}
