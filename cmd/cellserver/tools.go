package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
)

// tools are the subcommands, which take what follows their name.
var tools = map[string]func(args []string, w io.Writer) error{
	"check-aof":    checkAOF,
	"check-config": checkConfig,
	"restore":      restore,
	"dump":         dump,
	"import":       importKeys,
	"export":       exportKeys,
	"copy":         copyStates,
	"doctor":       doctor,
	"completion":   completion,
	"ping":         ping,
	"man":          manPage,
	"top":          showTop,
	"policy":       policyTool,
}

// toolsHelp is what --help says of the subcommands.
const toolsHelp = `
Commands (cellserver help NAME explains a command, an option, or a command of clients):
  cellserver help [NAME]             Prints this text, or explains NAME.
  cellserver version                 Prints the version.
  cellserver top [ADDRESS]           Shows in the terminal how a running server is. --once prints it.
  cellserver doctor ADDRESS          Says what of a running Redis moves here, and how. It only reads.
  cellserver import ADDRESS DIR      Copies the keys of redis-cell from a running Redis.
  cellserver export ADDRESS DIR      Copies the keys back.
  cellserver copy DIR ADDRESS        Copies the states of all limiters into a store (see --store). Also back.
  cellserver check-aof DIR [--fix]   Checks the files. --fix cuts an incomplete end.
  cellserver restore BACKUP DIR      Makes the files of a stopped server of a backup, beside its replicas.
  cellserver check-config FILE       Says whether a server would start with a configuration.
  cellserver policy WORD FILE        Checks a file of policies, compares it with a server, or makes it of others.
  cellserver dump DIR                Prints the files as JSON, one line for each entry or effect.
  cellserver ping [ADDRESS]          Says whether a server answers; its status is 0 if so.
  cellserver completion SHELL        Prints a completion script for bash, zsh or fish.
  cellserver man                     Prints the man page.
ADDRESS is ` + addressForms + `.
DIR contains the files of a stopped server: dir/appenddirname.
`

// answers are the flags that print something and do not start a server, beside help.
var answers = map[string]func(io.Writer) error{
	"--version":       writeVersion,
	"version":         writeVersion,
	"-v":              writeVersion,
	"--sample-config": config.WriteSample,
}

func writeHelp(w io.Writer) error {
	if err := config.WriteHelp(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, toolsHelp)
	return err
}

func writeVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "cellserver %s (answers as Redis %s with redis-cell), %s %s/%s\n",
		server.VersionText(), command.RedisVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
