package persistence

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// Restore copies a backup, the directory from, to another directory, so that a server can start
// with it. The backup has the files of a server. That server must not be running. The end of its
// log may be torn. The copy has the state of the backup but a new [DataSet], which is marked as
// restored. The directory to may exist, but must not have files of a server. Restore checks the
// backup as [Check] does and writes the results to w. If copying fails, Restore removes the copies
// and writes no manifest, so no server starts with a part of the state.
func Restore(fsys FS, from, to string, w io.Writer) error {
	if filepath.Clean(from) == filepath.Clean(to) {
		return fmt.Errorf("%s is the backup itself", to)
	}
	if err := Check(fsys, from, false, w); err != nil && !errors.Is(err, ErrTorn) {
		return fmt.Errorf("the backup: %w", err)
	}
	backup, unlock, err := claim(fsys, from)
	if err != nil {
		return fmt.Errorf("the backup: %w", err)
	}
	defer unlock()
	d, err := Take(Options{FS: fsys, Path: to})
	if err != nil {
		return err
	}
	defer d.lock.Close()
	names, err := fsys.List(to)
	if err != nil {
		return fmt.Errorf("listing %s: %w", to, err)
	}
	for _, name := range names {
		if isOurs(name) || name == manifestName {
			return fmt.Errorf("%s holds %s: move the files of the server to another directory first", to, name)
		}
	}
	return d.takeFrom(from, backup)
}

// takeFrom copies the files that backup, the manifest of the directory from, lists, and then writes
// a manifest that lists the copies. After an error it removes the copies, unless the new manifest may
// be in force.
func (d *Dir) takeFrom(from string, backup *manifest) (err error) {
	var made []string
	defer func() {
		var unsure *unsureError
		if err != nil && !errors.As(err, &unsure) {
			for _, path := range made {
				_ = d.o.FS.Remove(path) // if the removal fails, a server refuses the directory, since it has files but no manifest
			}
		}
	}()
	for _, p := range backup.parts() {
		path := d.path(p.name)
		made = append(made, path)
		if err := copyFile(d.o.FS, filepath.Join(from, p.name), path); err != nil {
			return err
		}
	}
	if err := d.o.FS.SyncDir(d.o.Path); err != nil {
		return fmt.Errorf("syncing %s: %w", d.o.Path, err)
	}
	m := *backup
	m.dataSet = DataSet{ID: NewID(), Restored: true}
	made = append(made, d.path(manifestName+tmpSuffix))
	return writeManifest(d.o.FS, d.o.Path, &m)
}

// copyFile copies a file and syncs the copy. The caller has to sync the directory.
func copyFile(fsys FS, from, to string) error {
	in, err := fsys.Open(from)
	if err != nil {
		return fmt.Errorf("opening %s: %w", from, err)
	}
	defer in.Close()
	size, err := in.Size()
	if err != nil {
		return fmt.Errorf("reading %s: %w", from, err)
	}
	out, err := fsys.Create(to)
	if err != nil {
		return fmt.Errorf("creating %s: %w", to, err)
	}
	n, err := io.Copy(out, io.NewSectionReader(in, 0, size))
	if err == nil && n < size {
		err = fmt.Errorf("%s has only %d of %d bytes", from, n, size)
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copying to %s: %w", to, err)
	}
	return nil
}
