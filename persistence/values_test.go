package persistence_test

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// setValues sets keys to values of n bytes, with some short ones between them, all in one record,
// and some of them twice.
func setValues(s *stage, mark byte, n int) {
	long := bytes.Repeat([]byte{mark}, n)
	pairs := [][]byte{[]byte("a"), long, []byte("b"), []byte("short"), []byte("c"), long[:n/2], []byte("d"), long[:n/4], []byte("a"), long}
	_, err := s.handle.SetStrings(0, pairs, false)
	require.NoError(s.t, err)
}

// TestLongValuesAreLoggedWhereTheyBelong: values to which the log refers without a copy are read
// again as they were when they were logged, whichever write fails, and are held only until they are
// written or dropped.
func TestLongValuesAreLoggedWhereTheyBelong(t *testing.T) {
	for n := 0; n < 12; n++ { // which write of long values fails; 0 for none
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			fsys := faultfs.New()
			s := mustOpen(t, fsys, persistence.SyncNo)
			writes, failed := 0, false
			fsys.Inject(func(_ int, c faultfs.Call) error {
				if c.Op != "write" || failed {
					return nil
				}
				if writes++; writes == n {
					failed = true
					return syscall.ENOSPC
				}
				return nil
			})
			for i := range byte(3) {
				if s.log.Refuses() {
					break
				}
				setValues(s, 'p'+i, 300_000)
				setValues(s, 'x'+i, 300_000) // before the first are written
				_ = s.log.Sync()             // the outcome is checked below
				if i == 1 && !s.log.Refuses() {
					setValues(s, 'r', 300_000)
					_, _ = s.dir.Rewrite(s.ks) // likewise
				}
			}
			require.Equal(t, failed, n > 0)
			if s.log.Refuses() {
				_, err := s.dir.Rewrite(s.ks)
				require.NoError(t, err)
			}
			setValues(s, 'z', 300_000)
			require.NoError(t, s.log.Sync())
			state := s.state()
			again := mustOpenAgain(t, s)
			require.Equal(t, state, again.state())
			again.handle.FlushAll()
			require.NoError(t, again.log.Sync())
			require.Zero(t, again.ks.InHeap())
			s.handle.FlushAll()
			require.Zero(t, s.ks.InHeap(), "something is referred to")
			again.close()
		})
	}
}

// mustOpenAgain loads the files that s has left.
func mustOpenAgain(t *testing.T, s *stage) *stage {
	s.close()
	again, err := open(t, s.fs, s.clock, persistence.SyncNo)
	require.NoError(t, err)
	return again
}
