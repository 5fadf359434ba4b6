package script

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folders are the folders of scripts, one for each kind: scripts with the replies of Redis, of
// Redis with the module redis-cell, and of this server only.
var Folders = []string{"redis", "redis-cell", "cellserver"}

// places are patterns for the directories that have the folders, below the root of the repository.
// A script about one group of commands is in the directory of that group.
var places = []string{"commands/*/testdata/scripts", "commands/internal/*/testdata/scripts", "compat_test/scripts"}

// Files returns the paths of the scripts in the given folders of the repository at root. They are
// in the order of folders, and in each folder sorted by name, whichever directory they are in. It
// returns an error if there is none, or if two have the same name.
func Files(root string, folders ...string) ([]string, error) {
	var patterns []string
	for _, place := range places {
		patterns = append(patterns, filepath.Join(root, filepath.FromSlash(place)))
	}
	return files(patterns, folders)
}

// files does what Files does, for folders below the directories that match patterns.
func files(patterns, folders []string) (all []string, err error) {
	for _, folder := range folders {
		var found []string
		for _, pattern := range patterns {
			some, err := filepath.Glob(filepath.Join(pattern, folder, "*.script"))
			if err != nil {
				return nil, fmt.Errorf("looking for scripts: %w", err)
			}
			found = append(found, some...)
		}
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(nameOf(a), nameOf(b)) })
		for i := 1; i < len(found); i++ {
			if nameOf(found[i-1]) == nameOf(found[i]) {
				return nil, fmt.Errorf("two scripts have the same name: %s and %s", found[i-1], found[i])
			}
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no scripts of %s below %s", strings.Join(folders, ", "), strings.Join(patterns, ", "))
	}
	return all, nil
}

// nameOf returns the name of the script in file: its folder and its file name without the
// extension, such as "redis/strings".
func nameOf(file string) string {
	return filepath.Base(filepath.Dir(file)) + "/" + strings.TrimSuffix(filepath.Base(file), ".script")
}

// Load parses the files that [Files] returns.
func Load(root string, folders ...string) ([]*Script, error) {
	all, err := Files(root, folders...)
	if err != nil {
		return nil, err
	}
	return parseFiles(all)
}

// LoadDir parses the scripts in the [Folders] of the directory dir.
func LoadDir(dir string) ([]*Script, error) {
	all, err := files([]string{dir}, Folders)
	if err != nil {
		return nil, err
	}
	return parseFiles(all)
}

func parseFiles(files []string) (all []*Script, err error) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a script: %w", err)
		}
		s, err := Parse(nameOf(file), string(text))
		if err != nil {
			return nil, err
		}
		s.File = file
		all = append(all, s)
	}
	return all, nil
}
