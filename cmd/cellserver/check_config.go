package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
)

const checkConfigUsage = "usage: cellserver check-config [--] FILE [--name value ...]"

// checkConfig checks whether a server would start with a configuration. Its error lists all faults,
// with the files and lines that contain them. Without a fault, it writes to w which options have no
// effect here, and that the configuration is good.
func checkConfig(args []string, w io.Writer) error {
	if len(args) > 1 && args[0] == "--" { // the argument after -- is a file, even if its name begins with a dash
		args = args[1:]
		if strings.HasPrefix(args[0], "-") && args[0] != "-" {
			args = slices.Concat([]string{"./" + args[0]}, args[1:])
		}
	} else if len(args) == 0 || strings.HasPrefix(args[0], "--") {
		return errors.New(checkConfigUsage)
	}
	c, err := config.LoadFrom(args, os.Environ(), os.Stdin)
	faults := config.Faults(errors.Join(err, server.Check(c)))
	if len(faults) > 0 {
		count := "1 fault"
		if len(faults) > 1 {
			count = fmt.Sprintf("%d faults", len(faults))
		}
		return fmt.Errorf("%w\n%s: %s", errors.Join(faults...), args[0], count)
	}
	if idle := c.Idle(); len(idle) > 0 {
		if _, err := fmt.Fprintf(w, "options of Redis that have no effect here: %s\n", strings.Join(idle, " ")); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "%s: the configuration is good\n", args[0])
	return err
}
