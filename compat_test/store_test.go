package compat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/script"
)

// ownKeyspace are the sections, and the scripts as a whole, that show something of a keyspace, beyond
// commands that are not served with a store.
var ownKeyspace = map[string]string{
	"cellserver/errors/fewer databases":                   oneDatabase,
	"cellserver/errors/memory is bounded":                 "maxmemory bounds the keys of a keyspace",
	"cellserver/inspect/rl.top":                           oneDatabase,
	"cellserver/memory/where memory goes":                 "it counts the keys of a keyspace",
	"redis-cell/keys/databases":                           oneDatabase,
	"redis/client/info":                                   oneDatabase,
	"redis/connection/a database belongs to a connection": oneDatabase,
	"redis/connection/select":                             oneDatabase,
	"redis/keys/flushdb":                                  oneDatabase,
	"cellserver/use/waiting for several limits, in turn":  "a clause beyond the first has no key of its own",
	"cellserver/id/repetitions in another database":       oneDatabase,
	"cellserver/reserve/settling works above maxmemory":   "maxmemory bounds the keys of a keyspace",
	"redis/server/config get":                             oneDatabase,
	"redis/server/info keyspace":                          "it counts the keys of a keyspace",
	"redis/transaction/select inside a transaction":       oneDatabase,
}

const oneDatabase = "there is one database"

// TestScriptsWithAStore: a server with a store replies like one with a keyspace, in all scripts
// that use only the commands it serves.
func TestScriptsWithAStore(t *testing.T) {
	out := unserved(t)
	played, seen := 0, map[string]bool{}
	for _, s := range loadScripts(t, "cellserver") {
		for _, section := range s.Sections {
			name := s.Name + "/" + section.Title
			if seen[name], seen[s.Name] = true, true; ownKeyspace[name]+ownKeyspace[s.Name] != "" {
				continue
			}
			for _, proto := range section.Protocols {
				if out.isUsedBy(section, proto) {
					continue
				}
				played++
				t.Run(s.Name+"/"+section.RunName(proto), func(t *testing.T) {
					t.Parallel()
					playWithStore(t, s, section, proto)
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

// playWithStore runs a section on a server with a store, in a bubble.
func playWithStore(t *testing.T, s *script.Script, section *script.Section, proto int) {
	t.Helper()
	options := append(inproc.SectionOptions(section, t.TempDir()), "--store", "redis://127.0.0.1:1")
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		server, double := w.StillWithStore(scriptStart, options...)
		w.Settle() // the server has read the policies
		playSection(t, s, section, proto, server.Target(inproc.PutKinds(double.Put)), nil)
	})
}
