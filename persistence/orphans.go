package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// firstBase is the only base that a crash can leave without any manifest: that of the
// first snapshot of a server without a log, of which nobody has been told yet.
const firstBase = "base.1.snap"

// Exists reports whether dir holds state, or what should be.
func Exists(fsys FS, dir string) bool {
	f, err := fsys.Open(filepath.Join(dir, manifestName))
	if err == nil {
		_ = f.Close() // nothing was written
		return true
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return true // it is there and cannot be read: whoever opens it is told why
	}
	left, err := orphan(fsys, dir)
	return err == nil && left != ""
}

// orphan returns the name of a file in dir that has state and that no manifest names,
// because there is none; "" if there is no such file. A server that was never up
// leaves at most an increment without records, or the first base.
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

// refuseOrphans is the error for a directory that has lost its manifest. Its files
// would be removed by a server that took it for empty.
func refuseOrphans(fsys FS, dir string) error {
	name, err := orphan(fsys, dir)
	if err != nil || name == "" {
		return err
	}
	return fmt.Errorf("%s holds %s and no %s, which lists the files that count. Nothing was loaded; restore the directory from a backup, or move the files away to start without them",
		dir, name, manifestName)
}

func sizeOf(fsys FS, path string) (int64, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return 0, fmt.Errorf("opening %s: %w", path, err)
	}
	defer f.Close()
	return f.Size()
}
