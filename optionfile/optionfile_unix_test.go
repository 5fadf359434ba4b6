//go:build unix

package optionfile

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOtherThanFiles: a FIFO without a writer would never be opened, and the devices would end
// nothing, or are opened for their effect.
func TestOtherThanFiles(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for _, path := range []string{fifo, "/dev/zero", "/dev/null", "/dev/tty"} {
		_, err := Read(path, 1<<20)
		require.ErrorIs(t, err, errNotRegular, path)
	}
}
