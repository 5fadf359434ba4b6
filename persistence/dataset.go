package persistence

import (
	"crypto/rand"
	"encoding/hex"
)

// NewID returns a random id of a history, or of a data set that begins: [HistoryLength]
// hexadecimal digits. A server draws that of its data set when it starts with nothing. Restarts,
// full syncs, promotions and backups keep it, so two servers with the same id have states of which
// one came from the other.
func NewID() string {
	var b [HistoryLength / 2]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// DataSet says whose state a server has.
type DataSet struct {
	ID string // see [NewID]; empty if it is unknown, as in files of older versions
	// Restored says that [Restore] has begun this data set from a backup, in the files of this server.
	// It is given up for another only on the word of an operator.
	Restored bool
}

// DataSet is the data set that the manifest names.
func (d *Dir) DataSet() DataSet {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.manifest.dataSet
}

// dataSet is the data set that memory has.
func (d *Dir) dataSet() DataSet {
	if d.o.DataSet == nil {
		return DataSet{}
	}
	return d.o.DataSet()
}

// KeepDataSet has the manifest name the data set that memory has, unless it does, or the files
// still have the state from before a full sync: then the next base brings the name.
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
