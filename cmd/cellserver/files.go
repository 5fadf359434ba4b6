package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
)

// tools are the subcommands, which take what follows their name.
var tools = map[string]func(args []string, w io.Writer) error{
	"check-aof": checkAOF,
	"dump":      dump,
	"import":    importKeys,
	"export":    exportKeys,
	"doctor":    doctor,
}

// checkAOF reads a directory whose server is stopped and says whether it is whole.
func checkAOF(args []string, w io.Writer) error {
	dir, options := split(args)
	if err := unknownOption("check-aof", options, "--fix"); err != nil {
		return err
	}
	fix := len(options) == 1 && options[0] == "--fix"
	if len(dir) != 1 || len(options) > 0 && !fix {
		return errors.New("usage: cellserver check-aof DIR [--fix]")
	}
	return persistence.Check(persistence.OS{}, dir[0], fix, w)
}

// dump writes what a directory holds as JSON, a line for each entry or effect.
func dump(args []string, w io.Writer) error {
	dir, options := split(args)
	if err := unknownOption("dump", options); err != nil {
		return err
	}
	if len(dir) != 1 || len(options) > 0 {
		return errors.New("usage: cellserver dump DIR")
	}
	return persistence.Dump(persistence.OS{}, dir[0], w)
}

// unknownOption names an option that a tool does not know, nil if there is none.
func unknownOption(tool string, given []string, known ...string) error {
	for _, o := range given {
		if !slices.Contains(known, o) {
			usage, _, _ := strings.Cut(manual[tool], "\n")
			return fmt.Errorf("%s: unknown option %q%s\n%s", tool, o, server.DidYouMean(o, known), usage)
		}
	}
	return nil
}

// split tells names from options, which may come before and behind them.
func split(args []string) (names, options []string) {
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			options = append(options, a)
		} else {
			names = append(names, a)
		}
	}
	return names, options
}
