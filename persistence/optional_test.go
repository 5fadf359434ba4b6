package persistence_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// TestRecordsOfLaterVersions: records that a server may ignore are ignored, and others, on which
// the state may depend, are refused.
func TestRecordsOfLaterVersions(t *testing.T) {
	for kind, known := range map[byte]bool{5: false, 127: false, 130: true, 255: true} {
		fsys := faultfs.New()
		s := mustOpen(t, fsys, persistence.SyncAlways)
		require.NoError(t, s.handle.Put(0, []byte("k"), entry.String, []byte("v"), entry.NoExpiry))
		require.NoError(t, s.log.Note(kind, []byte("later")))
		require.NoError(t, s.handle.Put(0, []byte("l"), entry.String, []byte("w"), entry.NoExpiry))
		want := s.state()
		s.close()
		if s, err := open(t, fsys.Kill(), clocktest.New(begin), persistence.SyncAlways); known {
			require.NoError(t, err, kind)
			require.Equal(t, want, s.state())
			s.close()
		} else {
			require.ErrorContains(t, err, "is not known to this program", kind)
		}
	}
}
