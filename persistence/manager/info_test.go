package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/persistence/manager"
)

// TestSnapshotSeconds: whole seconds, and -1 without a snapshot.
func TestSnapshotSeconds(t *testing.T) {
	last, running := manager.SnapshotSeconds(5*time.Second, 3900*time.Millisecond, 12*time.Second, true)
	require.EqualValues(t, 3, last)
	require.EqualValues(t, 7, running)
	last, running = manager.SnapshotSeconds(0, 0, time.Second, false)
	require.EqualValues(t, -1, last)
	require.EqualValues(t, -1, running)
}
