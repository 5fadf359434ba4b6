package main

import (
	"errors"
	"flag"
	"strings"

	"github.com/cellserver/cellserver/config"
)

// split separates the options, which are the arguments that begin with a dash, from the names,
// which are all others. Both keep their order.
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

// parseMixed parses options that may come before, between and after names. The error for an unknown
// option suggests the nearest one.
func parseMixed(flags *flag.FlagSet, args []string) (names []string, err error) {
	for rest := args; ; rest = rest[1:] {
		if err := flags.Parse(rest); err != nil {
			return nil, nearestOption(flags, err)
		}
		if rest = flags.Args(); len(rest) == 0 {
			return names, nil
		}
		names = append(names, rest[0])
	}
}

func nearestOption(flags *flag.FlagSet, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return err
	}
	var known []string
	flags.VisitAll(func(f *flag.Flag) { known = append(known, "--"+f.Name) })
	name = "--" + strings.TrimPrefix(name, "-")
	return errors.New("unknown option " + name + config.DidYouMean(name, known))
}
