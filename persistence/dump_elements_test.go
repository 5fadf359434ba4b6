package persistence_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// TestDumpShowsElements: the elements of a collection can be read without decoding its bytes,
// unless they are not text.
func TestDumpShowsElements(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncNo)
	require.NoError(t, s.handle.WriteHash(0, []byte("h"), func(h *collection.Hash) error {
		_, err := h.Set([]byte("field"), []byte("value"))
		return err
	}))
	require.NoError(t, s.handle.WriteSortedSet(0, []byte("z"), func(z *collection.SortedSet) error {
		_, _ = z.Set([]byte("low"), math.Inf(-1))
		_, err := z.Set([]byte("high"), 1e17)
		return err
	}))
	require.NoError(t, s.handle.WriteList(0, []byte("l"), func(l *collection.List) error {
		_ = l.PushBack([]byte("1"))
		return l.PushBack([]byte("2"))
	}))
	require.NoError(t, s.handle.WriteSet(0, []byte("s"), func(m *collection.Set) error {
		_, err := m.Add([]byte("only"))
		return err
	}))
	require.NoError(t, s.handle.WriteSet(0, []byte("bytes"), func(m *collection.Set) error {
		_, err := m.Add([]byte{0xff})
		return err
	}))
	s.close()
	var out bytes.Buffer
	require.NoError(t, persistence.Dump(fsys, "data", &out))
	for _, want := range []string{
		`"elements":[["field","value"]]`, `"elements":[["low","-Inf"],["high","1e+17"]]`,
		`"elements":["1","2"]`, `"elements":["only"]`, `"key":"bytes","kind":6,"type":"set","encoding":"set","value_base64":`,
	} {
		require.Contains(t, out.String(), want)
	}
}
