package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cellserver/cellserver/persistence"
)

// replaceFile replaces the file at path by one with the given content and mode. It is atomic: a
// crash at any moment leaves either the old or the new content. It returns an error if path is not
// a regular file.
func replaceFile(path string, content []byte, mode os.FileMode) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("replacing %s: it is not a regular file", path)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) { // the error without the name of the temporary file
			err = at.Err // omit the name of the temporary file
		}
		return fmt.Errorf("replacing %s: no file can be made in its directory: %w", path, err)
	}
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("replacing %s: %w", path, err), os.Remove(temp.Name()))
	}
	return persistence.OS{}.SyncDir(filepath.Dir(path))
}
