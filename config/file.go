package config

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/optionfile"
	"github.com/cellserver/cellserver/resp"
)

// loader reads a configuration and collects the faults in it.
type loader struct {
	c      *Config
	faults []error
	// given has the options that the current layer (file, environment or flags) has set.
	given map[string]bool
	// chain has the file that is being read, which is the last one, and the files that include it.
	chain []string
	files int
	idle  map[string]bool
}

func newLoader() *loader {
	return &loader{c: Default(), idle: make(map[string]bool)}
}

// fault adds err, if it is not nil, to the faults, with the place where it was found.
func (l *loader) fault(where string, err error) {
	if err != nil {
		l.faults = append(l.faults, fmt.Errorf("%s: %w", where, err))
	}
}

// unknown returns the error for name, which is not an option. The error repeats name only if it
// looks like the name of an option: other texts may be a password in the wrong place.
func (l *loader) unknown(name string) error {
	lower := strings.ToLower(name)
	if at := strings.IndexAny(lower, "=:"); at > 0 && slices.Contains(l.c.names(), lower[:at]) {
		return fmt.Errorf("option %q is followed by %q: write a space there", lower[:at], lower[at])
	}
	guess := DidYouMean(lower, l.c.names())
	if guess == "" && !nameLike(name) {
		return errors.New("unknown option")
	}
	return fmt.Errorf("unknown option %q%s", name, guess)
}

// nameLike reports whether word looks like the name of an option: it consists of lower-case
// letters, "-" and "_".
func nameLike(word string) bool {
	return strings.IndexFunc(word, func(r rune) bool { return r != '-' && r != '_' && (r < 'a' || r > 'z') }) < 0
}

func (l *loader) lacksValue(name string) error {
	lower := strings.ToLower(name)
	if _, word := promises[lower]; !word && !slices.Contains(l.c.names(), lower) {
		return l.unknown(name)
	}
	return fmt.Errorf("option %q lacks its value", name)
}

// assign sets the option with the index i, which is called name, to values. If the option takes
// several words, they are one value. The values of save, and of an option with words by prefix, add
// to those that the same layer has set before; any other value replaces an earlier one. where is
// the place for CONFIG REWRITE and for errors.
func (l *loader) assign(where string, i int, name string, values []string) error {
	o, value := &l.c.table[i], strings.Join(values, " ")
	switch o.kind.(type) {
	case words, outputLimits, groupBy, percentiles, primary, headerNames:
	case savePoints, byPrefix:
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
	if o.flagOnly && parsed != o.def && where != commandLine {
		return fmt.Errorf("option %q: only the command line can set %s", name, parsed)
	}
	l.c.values[i], l.given[o.name], l.c.origins[o.name] = parsed, true, where
	return nil
}

// rename applies `rename-command old new`; values has the two names. An unknown command, and a new
// name that is in use, are errors.
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

// foreign accepts an option of Redis that has no effect here, or returns the reason why name cannot
// be accepted. lower is name in lower case.
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

// directive applies one setting with its values, from a file, the environment or a flag. where is
// the place for CONFIG REWRITE and for errors.
func (l *loader) directive(where, name string, values []string) {
	lower := strings.ToLower(name)
	if i, ours := l.c.byName[lower]; ours {
		l.fault(where, l.assign(where, i, name, values))
		return
	}
	switch lower {
	case "include":
		l.include(where, values)
	case "user":
		l.c.users = append(l.c.users, acl.Line{Where: where, Words: values, Included: len(l.chain) > 1})
	case "loadmodule":
		l.fault(where, loadModule(values[0]))
		l.c.modules = append(l.c.modules, values[0])
	case "rename-command":
		l.fault(where, l.rename(values))
		l.c.origins[lower] = where
	default:
		l.fault(where, l.foreign(name, lower, values))
	}
}

// These bound included files: their depth, their number, and the bytes of each.
const (
	maxIncludeDepth = 16
	maxIncluded     = 1000
	maxConfig       = 16 << 20
)

// firstFile reads the configuration file that the command line names. Its path becomes the path of
// the configuration.
func (l *loader) firstFile(path string) {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	l.c.file = path
	l.file("reading the configuration", path)
}

// file reads the file at path. where is the place that includes it, for errors.
func (l *loader) file(where, path string) {
	switch {
	case slices.Contains(l.chain, path):
		l.fault(where, fmt.Errorf("%s includes itself", path))
		return
	case len(l.chain) > maxIncludeDepth:
		l.fault(where, fmt.Errorf("files include one another more than %d deep", maxIncludeDepth))
		return
	case l.files > maxIncluded:
		l.fault(where, fmt.Errorf("more than %d files are included", maxIncluded))
		return
	}
	content, err := optionfile.Read(path, maxConfig)
	if err != nil {
		l.fault(where, err)
		return
	}
	l.files++
	l.chain = append(l.chain, path)
	l.content(path, string(content))
	l.chain = l.chain[:len(l.chain)-1]
}

// standardInput reads a configuration from r. A nil r is a fault.
func (l *loader) standardInput(r io.Reader) {
	const name = "standard input"
	if r == nil {
		l.fault(name, errors.New("there is none to read the configuration from"))
		return
	}
	content, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	switch {
	case err != nil:
		l.fault(name, err)
	case len(content) > maxConfig:
		l.fault(name, fmt.Errorf("longer than %d bytes, so it is not a configuration", maxConfig))
	default:
		l.content(name, string(content))
	}
}

// content applies the settings in content, the content of the file at path. It has the syntax of
// redis.conf: a name and its values on a line, quotes as on the command line of redis-cli, and '#'
// before a comment.
func (l *loader) content(path, content string) {
	for n, line := range strings.Split(content, "\n") {
		line = strings.Trim(line, " \t\r")
		if line == "" || line[0] == '#' {
			continue
		}
		where := fmt.Sprintf("%s:%d", path, n+1)
		fields, ok := resp.SplitWords([]byte(line))
		switch {
		case !ok:
			l.fault(where, errors.New("unbalanced quotes"))
			continue
		case len(fields) == 0:
			continue
		case len(fields) < 2:
			l.fault(where, l.lacksValue(string(fields[0])))
			continue
		}
		values := make([]string, 0, len(fields)-1)
		for _, f := range fields[1:] {
			values = append(values, string(f))
		}
		l.directive(where, string(fields[0]), values)
	}
}

// include applies `include path`. As in Redis, the path is relative to the working directory, which
// the option dir sets, and not to the file. A pattern may match no file; a path without a pattern
// must exist.
func (l *loader) include(where string, values []string) {
	if len(values) != 1 {
		l.fault(where, errors.New(`option "include" takes one value`))
		return
	}
	path := values[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.c.Value("dir"), path)
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	if !strings.ContainsAny(values[0], "*?[") {
		l.file(where, path)
		return
	}
	matches, err := optionfile.Glob(path)
	if err != nil {
		l.fault(where, fmt.Errorf("include %q: %w", values[0], err))
	}
	for _, m := range matches {
		l.file(where, m)
	}
}
