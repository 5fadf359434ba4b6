package architecture

import (
	"fmt"
	"io/fs"
	"path"
)

// Walk calls see with the name and the source of each Go file below root, in lexical order. It
// leaves out the same folders as [Check]. It stops at the first error, and returns it.
func Walk(root fs.FS, see func(name string, source []byte) error) error {
	return fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skip(root, name)
		case path.Ext(name) != ".go":
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return fmt.Errorf("reading source: %w", err)
		}
		return see(name, source)
	})
}
