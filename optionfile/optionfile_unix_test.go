//go:build unix

package optionfile

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOtherThanFiles: opening a FIFO without a writer would block. Devices have no end, or
// opening them has side effects.
func TestOtherThanFiles(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for _, path := range []string{fifo, "/dev/zero", "/dev/null", "/dev/tty"} {
		_, err := Read(path, 1<<20)
		require.ErrorIs(t, err, errNotRegular, path)
	}
}
