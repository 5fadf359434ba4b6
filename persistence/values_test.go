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

// setValues sets keys to values of n bytes and some short ones between them, all in one
// record, some of them twice.
func setValues(s *stage, mark byte, n int) {
	long := bytes.Repeat([]byte{mark}, n)
	pairs := [][]byte{[]byte("a"), long, []byte("b"), []byte("short"), []byte("c"), long[:n/2], []byte("d"), long[:n/4], []byte("a"), long}
	_, err := s.handle.SetStrings(0, pairs, false)
	require.NoError(s.t, err)
}

// TestLongValuesAreLoggedWhereTheyBelong: values that the log refers to, and does not
// copy, are read again as what they were when they were logged, whichever of its writes
// fails, and nothing holds them any longer than until they are written or given up.
func TestLongValuesAreLoggedWhereTheyBelong(t *testing.T) {
	for n := 0; n < 12; n++ { // the write of long values that fails; none if 0
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
				_ = s.log.Sync()             // what came of it is asked below
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

// mustOpenAgain loads what s has left behind.
func mustOpenAgain(t *testing.T, s *stage) *stage {
	s.close()
	again, err := open(t, s.fs, s.clock, persistence.SyncNo)
	require.NoError(t, err)
	return again
}
