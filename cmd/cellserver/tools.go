package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/server"
)

// tools are the subcommands, which take what follows their name.
var tools = map[string]func(args []string, w io.Writer) error{
	"check-aof": checkAOF,
	"dump":      dump,
	"import":    importKeys,
	"export":    exportKeys,
	"copy":      copyStates,
	"doctor":    doctor,
}

// toolsHelp is what --help says of the subcommands.
const toolsHelp = `
Commands (cellserver help NAME explains a command, an option, or a command of clients):
  cellserver help [NAME]             Prints this text, or explains NAME.
  cellserver version                 Prints the version.
  cellserver doctor ADDRESS          Says what of a running Redis moves here, and how. It only reads.
  cellserver import ADDRESS DIR      Copies the keys of redis-cell from a running Redis.
  cellserver export ADDRESS DIR      Copies the keys back.
  cellserver copy DIR ADDRESS        Copies the states of all limiters into a store (see --store). Also back.
  cellserver check-aof DIR [--fix]   Checks the files. --fix cuts an incomplete end.
  cellserver dump DIR                Prints the files as JSON, one line for each entry or effect.
ADDRESS is ` + addressForms + `.
DIR contains the files of a stopped server: dir/appenddirname.
`

// answers are the flags that print something and do not start a server, beside help.
var answers = map[string]func(io.Writer) error{
	"--version":       writeVersion,
	"version":         writeVersion,
	"-v":              writeVersion,
	"--sample-config": server.WriteSample,
}

func writeHelp(w io.Writer) error {
	if err := server.WriteHelp(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, toolsHelp)
	return err
}

func writeVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "cellserver %s (answers as Redis %s with redis-cell), %s %s/%s\n",
		server.Version, command.RedisVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
