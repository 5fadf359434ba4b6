package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Load returns the settings from four sources. In rising precedence they are the defaults, the file
// that args may begin with, the variables CELLSERVER_<NAME> in environ, and the flags in args
// (`--name value ...`). The error has the faults of all single options, one on each line, or, if
// there are none, the faults of options that exclude each other.
func Load(args, environ []string) (*Config, error) { return LoadFrom(args, environ, nil) }

// LoadFrom is [Load] for args that may end with "-". In that case it also reads stdin, like another
// file.
func LoadFrom(args, environ []string, stdin io.Reader) (*Config, error) {
	return LoadOver(nil, args, environ, stdin)
}

// Preset is a setting that follows from an environment variable of another program.
type Preset struct {
	Variable string // the name of the variable, for errors
	Option   string // the name of the option
	Value    string
}

// LoadOver is [LoadFrom] with presets, which replace the defaults. Each other source takes precedence over them.
func LoadOver(presets []Preset, args, environ []string, stdin io.Reader) (*Config, error) {
	l := newLoader()
	l.begin()
	for _, p := range presets {
		l.directive(environmentOrigin+p.Variable, p.Option, []string{p.Value})
	}
	var given bytes.Buffer
	if stdin != nil {
		stdin = io.TeeReader(stdin, &given)
	}
	all := args
	l.begin()
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		l.firstFile(args[0])
		args = args[1:]
	}
	if len(args) > 0 && args[len(args)-1] == "-" {
		l.standardInput(stdin)
		args = args[:len(args)-1]
	}
	l.begin()
	l.environment(environ)
	l.begin()
	l.flags(args)
	l.c.keepSources(presets, all, environ, given.Bytes())
	return l.finish()
}

// keepSources keeps the sources from which the configuration was read, for Reload.
func (c *Config) keepSources(presets []Preset, args, environ []string, stdin []byte) {
	ours := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool { return !strings.HasPrefix(entry, environmentPrefix) })
	c.from = sources{slices.Clone(presets), slices.Clone(args), ours, stdin}
}

// begin begins a layer: an option that may be given several times starts empty in each layer.
func (l *loader) begin() { l.given = make(map[string]bool) }

// finish checks the rules that involve several settings, unless there are other faults. It returns
// the configuration, and an error with all faults; nil if there are none.
func (l *loader) finish() (*Config, error) {
	c := l.c
	for name := range l.idle {
		c.idle = append(c.idle, name)
	}
	slices.Sort(c.idle)
	if len(l.faults) == 0 {
		l.faults = append(l.faults, c.checkExposure(), c.checkStore(), c.checkClock(), c.checkListeners())
	}
	return c, errors.Join(l.faults...)
}

// checkStore returns an error for options that contradict the option store. With a store, it also
// sets databases to 1, because a store has one database.
func (c *Config) checkStore() error {
	if c.Value("store") == "" {
		return nil
	}
	var faults []error
	clash := func(name, why string) { faults = append(faults, c.exclude(name, "store", why)) }
	for _, name := range c.keeping() {
		clash(name, "the store keeps the limits, see its own "+name)
	}
	at := c.byName["databases"]
	switch c.Value("databases") {
	case "1", c.table[at].def: // the only number of databases that a store has, or the default value
		c.values[at] = "1"
	default:
		clash("databases", "there is one database with a store")
	}
	return errors.Join(faults...)
}

// keeping returns the names of the options that are set and keep the state of the server beyond its memory, except
// store.
func (c *Config) keeping() (names []string) {
	for _, name := range []string{"appendonly", "save", "replicaof"} {
		if v := c.Value(name); v != "" && v != "no" {
			names = append(names, name)
		}
	}
	return names
}

// exclude returns the error that the option called name excludes the one called other.
func (c *Config) exclude(name, other, why string) error {
	return c.At(name, fmt.Errorf("options %q and %q exclude each other: %s", name, other, why))
}

// checkClock returns an error for options that contradict a manual clock.
func (c *Config) checkClock() error {
	if !c.ManualClock() {
		return nil
	}
	var faults []error
	for _, name := range c.keeping() {
		faults = append(faults, c.exclude(name, "clock", "the instants of a manual clock mean nothing to a later start or another server"))
	}
	if c.Remote() {
		faults = append(faults, c.exclude("store", "clock", "a store decides by its own clock"))
	}
	return errors.Join(faults...)
}

// commandLine is the origin of an option that a flag has set.
const commandLine = "command line"

// environmentPrefix is the prefix of the names of environment variables that set options.
const environmentPrefix = "CELLSERVER_"

// environmentOrigin is the beginning of the origin of an option that an environment variable has
// set.
const environmentOrigin = "environment variable "

func (l *loader) environment(environ []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, environmentPrefix)
		if !ours || serviceLink(rest, value) {
			continue
		}
		l.directive(environmentOrigin+name, strings.ToLower(strings.ReplaceAll(rest, "_", "-")), []string{value})
	}
}

// serviceLink reports whether an environment variable does not set an option although its name
// begins with environmentPrefix; rest is the name after the prefix. Kubernetes sets such variables
// in every pod: CELLSERVER_SERVICE_HOST and CELLSERVER_PORT=tcp://10.0.0.1:6379 for a service named
// cellserver, and CELLSERVER_ADMIN_PORT=tcp://10.0.0.2:9121 for one named cellserver-admin.
func serviceLink(rest, value string) bool {
	rest = "_" + rest
	return strings.Contains(rest, "_SERVICE_HOST") || strings.Contains(rest, "_SERVICE_PORT") || strings.Contains(rest, "_PORT_") ||
		strings.HasSuffix(rest, "_PORT") && strings.Contains(value, "://")
}

// flags applies the flags in args, `--name value ...` or `--name=value`. All arguments up to the
// next flag are the value, so that `--bind a b` needs no quotes. A value that begins with "--"
// needs the second form.
func (l *loader) flags(args []string) {
	for len(args) > 0 {
		name, isFlag := strings.CutPrefix(args[0], "--")
		if !isFlag || name == "" {
			guess := ""
			if bare := strings.TrimPrefix(args[0], "-"); bare != args[0] && slices.Contains(l.c.names(), bare) {
				guess = `, did you mean "--` + bare + `"?`
			}
			l.fault(commandLine, fmt.Errorf("%q is not a flag%s", args[0], guess))
			args = args[1:]
			continue
		}
		name, first, joined := strings.Cut(name, "=")
		args = args[1:]
		var values []string
		for len(args) > 0 && !strings.HasPrefix(args[0], "--") {
			values = append(values, args[0])
			args = args[1:]
		}
		switch {
		case joined && len(values) > 0:
			l.fault(commandLine, fmt.Errorf("option %q has a value too many", name))
		case !joined && len(values) == 0:
			l.fault(commandLine, l.lacksValue(name))
		case joined:
			l.directive(commandLine, name, []string{first})
		default:
			l.directive(commandLine, name, values)
		}
	}
}
