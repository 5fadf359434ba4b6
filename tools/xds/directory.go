package xds

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Directory is a link to a directory of files, which are replaced all at once. Its methods must not be called
// concurrently.
type Directory struct {
	// Path is the path of the link. The directory that contains it has to exist, and has the files in hidden directories.
	Path string
}

// versions is the beginning of the names of the directories that have files.
const versions = ".rules-"

// Swap writes files, by their names, and makes the link lead to them. back restores the earlier target of the link, or
// removes the link if there was none. Files of earlier calls remain until Tidy.
func (d *Directory) Swap(files map[string][]byte) (back func() error, err error) {
	before, err := d.target()
	if err != nil {
		return nil, err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(d.Path), versions)
	if err != nil {
		return nil, fmt.Errorf("writing the rules: %w", err)
	}
	// The server may have another user than this process.
	err = os.Chmod(fresh, 0o755) //nolint:gosec // rules are no secret
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(fresh, name), text, 0o644)) //nolint:gosec // as above
	}
	if err == nil {
		err = d.lead(filepath.Base(fresh))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing the rules: %w", err), os.RemoveAll(fresh))
	}
	return func() error {
		if before == "" {
			return os.Remove(d.Path)
		}
		return d.lead(before)
	}, nil
}

// Tidy removes the files of earlier calls of Swap, to which the link does not lead.
func (d *Directory) Tidy() error {
	now, err := d.target()
	if err != nil {
		return err
	}
	parent := filepath.Dir(d.Path)
	all, err := os.ReadDir(parent)
	for _, entry := range all {
		if strings.HasPrefix(entry.Name(), versions) && entry.Name() != now {
			err = errors.Join(err, os.RemoveAll(filepath.Join(parent, entry.Name())))
		}
	}
	return err
}

// target returns the directory to which the link leads, or "" if there is no link. An empty directory in the place of
// the link is removed.
func (d *Directory) target() (string, error) {
	info, err := os.Lstat(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err //nolint:wrapcheck // it has the path
	case info.IsDir():
		if err := os.Remove(d.Path); err != nil {
			return "", fmt.Errorf("the rules of the control plane replace this directory, which has to be empty: %w", err)
		}
		return "", nil
	}
	return os.Readlink(d.Path) //nolint:wrapcheck // it has the path
}

// lead makes the link lead to the directory called name, in one step.
func (d *Directory) lead(name string) error {
	next := filepath.Join(filepath.Dir(d.Path), ".next-"+filepath.Base(d.Path))
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err //nolint:wrapcheck // it has the path
	}
	if err := os.Symlink(name, next); err != nil {
		return err //nolint:wrapcheck // it has the path
	}
	return os.Rename(next, d.Path)
}
