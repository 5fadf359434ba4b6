package persistence

import (
	"crypto/rand"
	"encoding/hex"
)

// NewID returns a random id for a replication history or for a new data set: [HistoryLength]
// hexadecimal digits. A server that starts without data draws an id for its data set. The id
// remains the same across restarts and promotions. A replica takes over the id of its primary, and
// [Restore] draws a new one. So if two data sets have the same id, they have a common origin.
func NewID() string {
	var b [HistoryLength / 2]byte
	_, _ = rand.Read(b[:]) // Read never fails, as its documentation says
	return hex.EncodeToString(b[:])
}

// DataSet identifies the data set to which a server's state belongs.
type DataSet struct {
	ID string // the ID: see [NewID]; "" if it is unknown, as in files of older versions
	// Restored is true if [Restore] has begun this data set from a backup, in the files of this
	// server. The server replaces such a data set by the data set of a primary only if an operator
	// demands it.
	Restored bool
}

// DataSet returns the data set that the manifest names, or the zero DataSet if the manifest names
// none.
func (d *Dir) DataSet() DataSet {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.manifest.dataSet
}

// dataSet returns the data set in memory, or the zero DataSet if Options.DataSet is nil.
func (d *Dir) dataSet() DataSet {
	if d.o.DataSet == nil {
		return DataSet{}
	}
	return d.o.DataSet()
}

// KeepDataSet writes the data set in memory to the manifest, if the manifest names another one. It
// does nothing without a log, while the log refuses effects, and between [Dir.AcceptState] and the
// next base. In these cases the manifest that is written with the next base names the data set. The
// error comes from writing the manifest.
func (d *Dir) KeepDataSet() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.log == nil || d.adopted != nil || d.log.Refuses() || d.manifest.dataSet == d.dataSet() {
		return nil
	}
	m := *d.manifest
	m.dataSet = d.dataSet()
	if err := writeManifest(d.o.FS, d.o.Path, &m); err != nil {
		return err
	}
	d.manifest = &m
	return nil
}
