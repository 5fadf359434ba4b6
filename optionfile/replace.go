package optionfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Replace replaces the file at path by one with the given content and mode, or creates the file. It
// is atomic: a crash at any moment leaves either the old or the new content. When Replace returns
// nil, the new content is durable. It returns an error if path names anything other than a
// regular file. Replace has no time limit: call it in the function that is passed to [Write].
func Replace(path string, content []byte, mode os.FileMode) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("replacing %s: it is not a regular file", path)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err // the error is shown without the name of the temporary file
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
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names of the files in dir durable. It does nothing on Windows, whose file
// systems journal names.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
