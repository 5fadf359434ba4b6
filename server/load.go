package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cellserver/cellserver/commands"
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

// loader is a configuration that is being read.
type loader struct {
	c      *Config
	faults []error
	// given has the options that the present layer (file, environment, flags) has set.
	given map[string]bool
	// chain is the files that include one another down to the present one.
	chain []string
	files int
	idle  map[string]bool
}

func newLoader() *loader {
	return &loader{c: DefaultConfig(), idle: make(map[string]bool)}
}

// begin begins a layer: what may be given several times begins anew.
func (l *loader) begin() { l.given = make(map[string]bool) }

// fault notes what is wrong at a place.
func (l *loader) fault(where string, err error) {
	if err != nil {
		l.faults = append(l.faults, fmt.Errorf("%s: %w", where, err))
	}
}

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

// directive is one setting with its values, wherever it was given; where begins the
// text of a fault.
func (l *loader) directive(where, name string, values []string) {
	lower := strings.ToLower(name)
	if i, ours := l.c.byName[lower]; ours {
		l.fault(where, l.assign(i, name, values))
		return
	}
	switch lower {
	case "include":
		l.include(where, values)
	case "loadmodule":
		l.fault(where, loadModule(values[0]))
		l.c.modules = append(l.c.modules, values[0])
	case "rename-command":
		l.fault(where, l.rename(values))
	default:
		l.fault(where, l.foreign(name, lower, values))
	}
}

// foreign takes an option of Redis that means nothing here, or says why not.
func (l *loader) foreign(name, lower string, values []string) error {
	if o, known := l.c.redis[lower]; known {
		if err := refusedRedisValue(o.name, strings.Join(values, " ")); err != nil {
			return fmt.Errorf("option %q: %w", name, err)
		}
		l.idle[lower] = true
		return nil
	}
	if p, word := promises[lower]; word {
		return fmt.Errorf("option %q: %w", name, errors.New(p.why))
	}
	return l.unknown(name)
}

// unknown is the fault of a name that is no option.
func (l *loader) unknown(name string) error {
	return fmt.Errorf("unknown option %q%s", name, DidYouMean(strings.ToLower(name), l.c.names()))
}

// lacksValue is the fault of a name without anything behind it.
func (l *loader) lacksValue(name string) error {
	lower := strings.ToLower(name)
	if _, word := promises[lower]; !word && !slices.Contains(l.c.names(), lower) {
		return l.unknown(name)
	}
	return fmt.Errorf("option %q lacks its value", name)
}

// assign sets option i to values, which make one value if it takes several words.
func (l *loader) assign(i int, name string, values []string) error {
	o, value := &l.c.table[i], strings.Join(values, " ")
	switch o.kind.(type) {
	case words, outputLimits:
	case savePoints:
		if l.given[o.name] && value != "" {
			value = l.c.values[i] + " " + value
		}
	default:
		if len(values) > 1 {
			return fmt.Errorf("option %q takes one value", name)
		}
	}
	parsed, err := l.c.parse(i, value)
	if err != nil {
		return fmt.Errorf("option %q: %w", name, err)
	}
	l.c.values[i], l.given[o.name] = parsed, true
	return nil
}

// rename is `rename-command old new`.
func (l *loader) rename(values []string) error {
	if len(values) != 2 {
		return errors.New(`option "rename-command" takes a command and its new name`)
	}
	renamed := append(slices.Clone(l.c.renamed), [2]string{values[0], values[1]})
	if _, err := commands.NewRenamedTable(renamed); err != nil {
		return fmt.Errorf("option %q: %w", "rename-command", err)
	}
	l.c.renamed = renamed
	return nil
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

// path returns the file that an option names, "" if it names none: relative to dir, as
// for Redis, which has gone there.
func (c *Config) path(name string) string {
	path := c.value(name)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.value("dir"), path)
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
