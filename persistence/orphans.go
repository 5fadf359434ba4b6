package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// firstBase is the name of the first base of a server without a log. A crash may leave this file in a
// directory without a manifest; then the snapshot has not been acknowledged.
const firstBase = "base.1.snap"

// Exists reports whether the directory dir has files with state. It also returns true for a
// manifest that cannot be read.
func Exists(fsys FS, dir string) bool {
	f, err := fsys.Open(filepath.Join(dir, manifestName))
	if err == nil {
		_ = f.Close() // an error does not matter, because nothing was written
		return true
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return true // the manifest exists but cannot be read; Open will return the error
	}
	left, err := orphan(fsys, dir)
	return err == nil && left != ""
}

// orphan returns the name of a file with state in the directory dir, which has no manifest, or ""
// if there is no such file. An increment without records and the first base do not count: a server
// that was never ready may leave them.
func orphan(fsys FS, dir string) (string, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", dir, err)
	}
	for _, n := range names {
		if base, _ := filepath.Match(basePattern, n); base && n != firstBase {
			return n, nil
		}
		if log, _ := filepath.Match(incrementPattern, n); !log {
			continue
		}
		size, err := sizeOf(fsys, filepath.Join(dir, n))
		if err != nil {
			return "", err
		}
		if size > headerSize {
			return n, nil
		}
	}
	return "", nil
}

// refuseOrphans returns an error if the directory dir has files with state but has lost its
// manifest. A server that took the directory for empty would remove the files.
func refuseOrphans(fsys FS, dir string) error {
	name, err := orphan(fsys, dir)
	if err != nil || name == "" {
		return err
	}
	return fmt.Errorf("%s holds %s and no %s, which lists the files that count. Nothing was loaded; restore the directory from a backup, or move the files away to start without them",
		dir, name, manifestName)
}

// sizeOf returns the length in bytes of the file at path.
func sizeOf(fsys FS, path string) (int64, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return 0, fmt.Errorf("opening %s: %w", path, err)
	}
	defer f.Close()
	return f.Size()
}
