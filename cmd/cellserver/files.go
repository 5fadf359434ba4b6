package main

import (
	"errors"
	"io"

	"github.com/cellserver/cellserver/persistence"
)

// tools are the subcommands, which take what follows their name.
var tools = map[string]func(args []string, w io.Writer) error{
	"check-aof": checkAOF,
	"dump":      dump,
	"import":    importKeys,
	"export":    exportKeys,
}

// checkAOF reads a directory whose server is stopped and says whether it is whole.
func checkAOF(args []string, w io.Writer) error {
	fix := len(args) == 2 && args[1] == "--fix"
	if len(args) != 1 && !fix {
		return errors.New("usage: cellserver check-aof DIR [--fix]")
	}
	return persistence.Check(persistence.OS{}, args[0], fix, w)
}

// dump writes what a directory holds as JSON, a line for each entry or effect.
func dump(args []string, w io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: cellserver dump DIR")
	}
	return persistence.Dump(persistence.OS{}, args[0], w)
}
