package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
)

// tools are the subcommands. They get the arguments after their name.
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

// toolsHelp is the part of --help before the options.
const toolsHelp = `Usage: cellserver [file.conf] [--name value ...] [-]
       cellserver COMMAND

You can use a redis.conf unchanged; "-" reads one from standard input.

Commands:
  help [NAME]            Print this text, or explain a command, an option, or a
                         command of clients.
  version                Print the version.
  ratelimit              Serve in the place of envoyproxy/ratelimit, by its
                         environment variables.
  top [ADDRESS]          Show in the terminal how a running server is. --once
                         prints it.
  ping [ADDRESS]         Say whether a server answers; the status is 0 if so.
  doctor ADDRESS         Say what of a running Redis moves here, and how. It
                         only reads.
  import ADDRESS DIR     Copy the keys of redis-cell from a running Redis.
  export ADDRESS DIR     Copy the keys back.
  copy DIR ADDRESS       Copy the states of all limiters into a store (see
                         --store). Also back.
  policy WORD FILE       Check a file of policies, compare it with a server, or
                         make it of those of others.
  check-config FILE      Say whether a server would start with a configuration.
  check-aof DIR [--fix]  Check the files. --fix cuts an incomplete end.
  restore BACKUP DIR     Make the files of a stopped server of a backup, beside
                         its replicas.
  dump DIR               Print the files as JSON, one line for each entry or
                         effect.
  completion SHELL       Print a completion script for bash, zsh or fish.
  man                    Print the man page.
  --sample-config        Print a configuration with every option.

`

// answers are the flags, other than help, that print something and start no server.
var answers = map[string]func(io.Writer) error{
	"--version":       writeVersion,
	"version":         writeVersion,
	"-v":              writeVersion,
	"--sample-config": config.WriteSample,
}

// helpWidth is the maximum number of columns of --help.
const helpWidth = 80

// writeHelp writes the output of --help.
func writeHelp(w io.Writer) error {
	var b strings.Builder
	b.WriteString(toolsHelp)
	wrap(&b, "", "DIR contains the files of a stopped server: dir/appenddirname. ADDRESS is "+addressForms+".")
	b.WriteString("\nOptions, --NAME VALUE here and NAME VALUE in a file, with their defaults:\n")
	group := ""
	for _, o := range config.Describe() {
		if o.Group != group {
			group = o.Group
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		head := "--" + o.Name + " <" + o.Hint + ">"
		if o.Default != "" {
			head += " (" + o.Default + ")"
		}
		wrap(&b, "  ", head)
		wrap(&b, "      ", o.Text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wrap writes text in lines of at most helpWidth columns with an indent. A longer word gets a line
// of its own.
func wrap(b *strings.Builder, indent, text string) {
	line := indent
	for _, word := range strings.Fields(text) {
		switch {
		case line == indent:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= helpWidth:
			line += " " + word
		default:
			b.WriteString(line + "\n")
			line = indent + word
		}
	}
	b.WriteString(line + "\n")
}

func writeVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "cellserver %s (answers as Redis %s with redis-cell), %s %s/%s\n",
		server.VersionText(), command.RedisVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
