package persistence_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// A process may die while it heals its log, too: whichever call of a rewrite fails, and whichever
// call of the healing that follows is the last one, acknowledged effects are not lost.
func TestDeathDuringRecoveryLosesNothing(t *testing.T) {
	effort.Alone(t)
	checked := 0
	for first := 1; ; first++ {
		for last := 1; ; last++ {
			fsys := faultfs.New()
			s := mustOpen(t, fsys, persistence.SyncAlways)
			rng := rand.New(rand.NewPCG(1, 2))
			for range 10 {
				s.act(rng)
			}
			require.NoError(t, s.log.Sync())
			want := s.state()
			hit := false
			fsys.Inject(func(n int, _ faultfs.Call) error {
				if n == first {
					hit = true
					return syscall.ENOSPC
				}
				return nil
			})
			_, _ = s.dir.Rewrite(s.ks)
			if !hit {
				require.Greater(t, checked, 200)
				t.Logf("%d deaths", checked)
				return
			}
			died := false
			fsys.Inject(func(n int, _ faultfs.Call) error {
				if n >= last {
					died = true
					return syscall.EIO
				}
				return nil
			})
			_, _ = s.dir.Rewrite(s.ks) // the test checks what is left
			about := fmt.Sprintf("call %d failed, call %d of the next try was the last", first, last)
			for _, left := range []*faultfs.FS{fsys.Kill(), fsys.Crash(rng)} {
				after, err := open(t, left, s.clock, persistence.SyncAlways)
				require.NoError(t, err, about)
				require.Equal(t, want, after.state(), about)
				after.close()
			}
			s.ks.Close()
			if !died {
				break
			}
			checked++
		}
	}
}

// Repeated attempts on a full disk do not fill it: a failed attempt leaves no file.
func TestFailedAttemptsOnAFullDiskLeaveNoFiles(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		for _, file := range []string{"incr", "base", "manifest.tmp"} {
			fsys := faultfs.New()
			s := mustOpen(t, fsys, persistence.SyncAlways)
			require.NoError(t, s.handle.Put(0, []byte("key"), entry.String, []byte("value"), entry.NoExpiry))
			fail := func(_ int, c faultfs.Call) error {
				if c.Op == op && strings.Contains(c.Name, file) {
					return syscall.ENOSPC
				}
				return nil
			}
			fsys.Inject(fail)
			if file == "incr" {
				require.Error(t, s.log.Sync())
			}
			before := len(fsys.Names())
			for range 20 {
				_, err := s.dir.Rewrite(s.ks)
				require.Error(t, err)
			}
			// If a base cannot be written, the increment that was made for it remains.
			most := map[string]int{"incr": before, "base": before + 20, "manifest.tmp": before + 1}[file]
			require.LessOrEqual(t, len(fsys.Names()), most, "%s of %s: %v", op, file, fsys.Names())
			fsys.Inject(nil)
			_, err := s.dir.Rewrite(s.ks)
			require.NoError(t, err)
			want := s.state()
			s.close()
			again, err := open(t, fsys, s.clock, persistence.SyncAlways)
			require.NoError(t, err)
			require.Equal(t, want, again.state())
		}
	}
}
