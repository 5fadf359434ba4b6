package main

import (
	"errors"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/cmd/cellserver/reference"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
)

// shells maps the names of shells to the functions that write their completion scripts.
var shells = map[string]func(io.Writer, *reference.Program) error{
	"bash": reference.Bash,
	"zsh":  reference.Zsh,
	"fish": reference.Fish,
}

// completion prints a script that completes command lines of this program in the shell that args
// names. An unknown shell is an error.
func completion(args []string, w io.Writer) error {
	if len(args) != 1 {
		return errors.New(completionUsage)
	}
	write := shells[args[0]]
	if write == nil {
		return errors.New("completion: unknown shell" + config.DidYouMean(args[0], slices.Sorted(maps.Keys(shells))) + "\n" + completionUsage)
	}
	return write(w, described())
}

func manPage(args []string, w io.Writer) error {
	if len(args) != 0 {
		return errors.New("usage: cellserver man")
	}
	p := described()
	build, _ := debug.ReadBuildInfo()
	p.Date = releaseDate(os.Getenv("SOURCE_DATE_EPOCH"), released, build)
	return reference.Man(w, p)
}

// released is the time of the release in seconds since 1970. The build of a release sets it; it is
// empty in other programs.
var released string

// releaseDate returns the date of the program, zero if it is unknown: the date that a packager has
// set, the date of the release, or the date of the compiled commit. It does not depend on the
// clock, so the same program always prints the same page.
func releaseDate(chosen, released string, build *debug.BuildInfo) time.Time {
	for _, text := range []string{chosen, released} {
		if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
			return time.Unix(seconds, 0).UTC()
		}
	}
	if build == nil {
		return time.Time{}
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.time" {
			if at, err := time.Parse(time.RFC3339, s.Value); err == nil {
				return at.UTC()
			}
		}
	}
	return time.Time{}
}

// answered has the manual texts of the first arguments that are words but no tools: help and
// version.
var answered = map[string]string{
	"help": `usage: cellserver help [NAME ...]

Prints all options and commands, or explains an option, a command of this program, or a
command of clients.
`,
	"version": `usage: cellserver version

Prints the version of the server, of Redis whose replies it gives, and of Go.
`,
}

// described returns the description of the whole program for shells and man.
func described() *reference.Program {
	p := &reference.Program{Version: server.Version, Topics: config.Names()}
	for _, o := range config.Describe() {
		p.Options = append(p.Options, reference.Option{Name: o.Name, Hint: o.Hint, Default: o.Default, Text: o.Text})
	}
	all := maps.Clone(manual)
	maps.Copy(all, answered)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p.Topics = append(p.Topics, name)
		c := reference.NewCommand(name, all[name])
		c.Configures = name == "check-config" || name == serviceTool
		p.Commands = append(p.Commands, c)
	}
	for _, c := range commandNames() {
		p.Topics = append(p.Topics, shown(c))
	}
	slices.Sort(p.Topics)
	p.Topics = slices.Compact(p.Topics)
	return p
}

// commandNames returns the names of the commands for clients.
func commandNames() (names []string) {
	for _, c := range commands.NewTable().Top() {
		names = append(names, c.Name)
	}
	return names
}
