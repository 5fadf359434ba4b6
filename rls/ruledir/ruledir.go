// Package ruledir finds the files of envoyproxy/ratelimit that the option rls-config names, and tells when they change.
//
// It looks at files and does not wait for events of the file system: a mounted volume may be replaced by
// links, of which such events are lost. It accesses files through package optionfile, with its time limits, so no event
// loop may call it.
package ruledir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cellserver/cellserver/optionfile"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// These are the bounds of the files: their number, and the sum of their sizes in bytes.
const (
	MaxFiles = 1000
	MaxTexts = 64 << 20
)

// State describes the files at the time when [Look] has examined them.
type State struct {
	paths []string
	infos []fs.FileInfo
}

// Look looks at the files that path names. If path is a directory, they are the regular files in it whose names end in
// .yaml or .yml and do not begin with a dot, in the order of their names. Links are followed. It returns the error of
// the file system, also for a link that leads nowhere, or says that there are more than [MaxFiles].
func Look(path string) (*State, error) {
	info, err := optionfile.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return &State{[]string{path}, []fs.FileInfo{info}}, nil
	}
	names, err := optionfile.Names(path)
	if err != nil {
		return nil, err
	}
	s := new(State)
	for _, name := range names {
		if !isRuleFile(name) {
			continue
		}
		file := filepath.Join(path, name)
		info, err := optionfile.Stat(file)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		if len(s.paths) == MaxFiles {
			return nil, fmt.Errorf("%s: more than %d files", path, MaxFiles)
		}
		s.paths, s.infos = append(s.paths, file), append(s.infos, info)
	}
	return s, nil
}

// isRuleFile reports whether a file of a directory with the given name has rules.
func isRuleFile(name string) bool {
	return !strings.HasPrefix(name, ".") && (strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml"))
}

// Same reports whether s and other have the same files, with the same sizes and times of modification. Both may be nil.
func (s *State) Same(other *State) bool {
	if s == nil || other == nil {
		return s == other
	}
	if len(s.paths) != len(other.paths) {
		return false
	}
	for i, a := range s.infos {
		b := other.infos[i]
		if s.paths[i] != other.paths[i] || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) || !os.SameFile(a, b) {
			return false
		}
	}
	return true
}

// Read reads the files of s. Their names in the result are their paths. It returns the error of the file system, or
// says that a file has more than [rulefile.MaxText] bytes, or all files more than [MaxTexts].
func (s *State) Read() ([]rulefile.File, error) {
	files := make([]rulefile.File, len(s.paths))
	left := MaxTexts
	for i, path := range s.paths {
		text, err := optionfile.Read(path, min(left, rulefile.MaxText))
		if err != nil {
			return nil, err
		}
		left -= len(text)
		files[i] = rulefile.File{Name: path, Text: text}
	}
	return files, nil
}
