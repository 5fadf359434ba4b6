package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Load returns the settings from, in rising precedence, the defaults, the file that
// args may begin with, the environment (CELLSERVER_<NAME>) and the flags in args
// (`--name value ...`). The error names every fault there is, one on a line.
func Load(args, environ []string) (*Config, error) { return LoadFrom(args, environ, nil) }

// LoadFrom is [Load] for arguments that may end with "-": stdin is then read as one more
// file.
func LoadFrom(args, environ []string, stdin io.Reader) (*Config, error) {
	l := newLoader()
	l.begin()
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		l.firstFile(args[0])
		args = args[1:]
	}
	if len(args) > 0 && args[len(args)-1] == "-" {
		l.readAll("standard input", stdin)
		args = args[:len(args)-1]
	}
	l.begin()
	l.environment(environ)
	l.begin()
	l.flags(args)
	return l.finish()
}

// begin begins a layer: what may be given several times begins anew.
func (l *loader) begin() { l.given = make(map[string]bool) }

// finish checks what only all settings together tell.
func (l *loader) finish() (*Config, error) {
	c := l.c
	for name := range l.idle {
		c.idle = append(c.idle, name)
	}
	slices.Sort(c.idle)
	if len(l.faults) == 0 {
		l.faults = append(l.faults, c.checkExposure())
	}
	return c, errors.Join(l.faults...)
}

// environmentPrefix begins the names of our environment variables.
const environmentPrefix = "CELLSERVER_"

func (l *loader) environment(environ []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, environmentPrefix)
		if !ours || serviceLink(rest, value) {
			continue
		}
		l.directive("environment variable "+name, strings.ToLower(strings.ReplaceAll(rest, "_", "-")), []string{value})
	}
}

// serviceLink reports whether a variable of our prefix is none of ours: Kubernetes
// tells every pod about a service named cellserver by such as
// CELLSERVER_SERVICE_HOST and CELLSERVER_PORT=tcp://10.0.0.1:6379.
func serviceLink(rest, value string) bool {
	return strings.HasPrefix(rest, "SERVICE_") || strings.HasPrefix(rest, "PORT_") ||
		rest == "PORT" && strings.Contains(value, "://")
}

// flags reads `--name value ...`: everything up to the next flag is the value, so
// that `--bind a b` needs no quotes. A value may not begin with "--".
func (l *loader) flags(args []string) {
	const where = "command line"
	for len(args) > 0 {
		name, isFlag := strings.CutPrefix(args[0], "--")
		if !isFlag || name == "" {
			guess := ""
			if bare := strings.TrimPrefix(args[0], "-"); bare != args[0] && slices.Contains(l.c.names(), bare) {
				guess = `, did you mean "--` + bare + `"?`
			}
			l.fault(where, fmt.Errorf("%q is not a flag%s", args[0], guess))
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
			l.fault(where, fmt.Errorf("option %q has a value too many", name))
		case !joined && len(values) == 0:
			l.fault(where, l.lacksValue(name))
		case joined:
			l.directive(where, name, []string{first})
		default:
			l.directive(where, name, values)
		}
	}
}

// checkDir returns why dir is no directory to work in, in Redis' words.
func (c *Config) checkDir() error {
	dir := c.value("dir")
	var err error = syscall.ENOENT // of an empty one, as for chdir
	if dir != "" {
		// The dot behind it asks for leave to enter it, which chdir needs as well.
		_, err = os.Stat(dir + string(os.PathSeparator) + ".")
	}
	if err != nil {
		return fmt.Errorf("Can't chdir to '%s': %s", dir, systemWords(err)) //nolint:staticcheck // Redis' words
	}
	return nil
}
