package persistence

import (
	"crypto/rand"
	"encoding/hex"
)

// NewID returns a random id for a history or for a new data set: [HistoryLength] hexadecimal
// digits. A server draws one for its data set when it starts without data. The id remains the same
// across restarts, full resynchronizations, promotions and backups. So if two servers have the same
// id, the state of one comes from that of the other.
func NewID() string {
	var b [HistoryLength / 2]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// DataSet identifies the data set of a server's state.
type DataSet struct {
	ID string // see [NewID]; empty if it is unknown, as in files of older versions
	// Restored says that [Restore] has begun this data set from a backup, in the files of this
	// server. The server gives it up for another one only if an operator says so.
	Restored bool
}

// DataSet returns the data set that the manifest names.
func (d *Dir) DataSet() DataSet {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.manifest.dataSet
}

// dataSet returns the data set in memory.
func (d *Dir) dataSet() DataSet {
	if d.o.DataSet == nil {
		return DataSet{}
	}
	return d.o.DataSet()
}

// KeepDataSet writes the data set in memory to the manifest, if the manifest names another one.
// While the files have the state of before a full resynchronization it does nothing, since the
// manifest of the next base has the new name.
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
