package policyfile_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/policyfile"
	"github.com/cellserver/cellserver/policy/registry"
)

// TestHashOfAFile: it is that of the content in force, whatever the order and the form of the text.
func TestHashOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	r := registry.New(registry.Options{Shared: true})
	f := policyfile.NewOverlay(path, r, func() policy.Bounds { return policy.Bounds{} }, func() limit.Instant { return 0 })
	require.Empty(t, f.Hash())
	require.Empty(t, (*policyfile.File)(nil).Hash())
	write("policies:\n  a:\n    limits: [TB 1 1 1]\n  b: {limits: [sw 2 60]}\n")
	apply, err := f.Prepare(func() { f.Settle(nil, slog.New(slog.DiscardHandler)) })
	require.NoError(t, err)
	require.Empty(t, f.Hash(), "it is not in force yet")
	apply()
	hash := f.Hash()
	require.Regexp(t, "^[0-9a-f]{16}$", hash)
	require.NotNil(t, r.Table().Policy([]byte("a")))

	load := func(text string) string {
		write(text)
		_, err := f.Load(nil, registry.Author{})
		require.NoError(t, err)
		return f.Hash()
	}
	require.Equal(t, hash, load("# a comment\npolicies:\n  'b':\n    limits:\n      - SW 2 60\n  a: {limits: [tb 1 1 1]}\n"))
	require.NotEqual(t, hash, load("policies:\n  a:\n    limits: [TB 2 1 1]\n  b: {limits: [SW 2 60]}\n"))
	now := f.Hash()
	write("policies:\n  a\n")
	_, err = f.Load(nil, registry.Author{})
	require.ErrorContains(t, err, path+":2: ")
	require.Equal(t, now, f.Hash(), "a file with faults is not in force")
	require.Equal(t, hash, load(strings.Repeat(" ", 3)+"\npolicies:\n  a:\n    limits: [TB 1 1 1]\n  b: {limits: [SW 2 60]}\n"))
}
