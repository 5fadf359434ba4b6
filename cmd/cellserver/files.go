package main

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/cellserver/cellserver/persistence"
)

// checkAOF reads the directory of a stopped server and reports whether it is complete. With --fix
// it also cuts an incomplete end.
func checkAOF(args []string, w io.Writer) error {
	dir, options := split(args)
	if err := unknownOption("check-aof", options, "--fix"); err != nil {
		return err
	}
	fix := len(options) == 1 && options[0] == "--fix"
	if len(dir) != 1 || len(options) > 0 && !fix {
		return errors.New("usage: cellserver check-aof DIR [--fix]")
	}
	return persistence.Check(persistence.OS{}, filesIn(dir[0]), fix, w)
}

// filesIn returns the directory with the files of a server: dir, or its subdirectory with the
// default of appenddirname if only that contains files. So a user may pass either of the two.
func filesIn(dir string) string {
	below := filepath.Join(dir, defaultFilesDir)
	if persistence.HasFiles(dir) || !persistence.HasFiles(below) {
		return dir
	}
	return below
}

// defaultFilesDir is the default of appenddirname.
const defaultFilesDir = "appendonlydir"

// dump writes the content of a directory as JSON, one line for each entry or effect.
func dump(args []string, w io.Writer) error {
	dir, options := split(args)
	if err := unknownOption("dump", options); err != nil {
		return err
	}
	if len(dir) != 1 || len(options) > 0 {
		return errors.New("usage: cellserver dump DIR")
	}
	return persistence.Dump(persistence.OS{}, filesIn(dir[0]), w)
}
