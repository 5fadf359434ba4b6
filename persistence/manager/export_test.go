package manager

import "time"

// SnapshotSeconds returns the fields of INFO about the duration of snapshots, for a snapshot that
// began at began and one that took took, at the stopwatch reading now.
func SnapshotSeconds(began, took, now time.Duration, saving bool) (last, running int64) {
	var n snapshots
	n.began.Store(int64(began))
	n.took.Store(int64(took))
	return n.seconds(saving, now)
}
