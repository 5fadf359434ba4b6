// Package envoyenv translates the environment variables of envoyproxy/ratelimit into options of this server.
//
// [Translate] does so, by the table that [Rows] and [Idle] show. The package reads no environment and opens no file: the
// caller passes the variables, and package config loads the options.
package envoyenv

import (
	"errors"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/config"
)

// Variable is an environment variable of ratelimit.
type Variable struct {
	Name string
	// Default is the value that the variable has while it is not set.
	Default string
}

// Row says how variables determine the value of one option.
type Row struct {
	// Option is the name of the option; "" for variables that are checked but determine no option.
	Option    string
	Variables []Variable
	// Note is a remark for the documentation, in Markdown; it may be "".
	Note string

	// value returns the value of the option. ok is false if the option keeps its own default.
	value func(g *given) (v string, ok bool)
}

// IdleGroup has variables that have no effect here, for a common reason.
type IdleGroup struct {
	Names []string
	Why   string
}

// Translate returns the presets that follow from environ, whose elements have the form NAME=value, and the names of the
// variables in it that have no effect here, sorted. A variable that is not set has the default of ratelimit. The error
// has a fault for each variable whose value ratelimit would refuse, or that asks for something that the server does not do.
// No fault repeats a value of a variable that has no effect.
func Translate(environ []string) (presets []config.Preset, idle []string, err error) {
	rows := Rows()
	g := newGiven(environ, rows)
	for i := range rows {
		r := &rows[i]
		v, ok := r.value(g)
		if ok && r.Option != "" {
			presets = append(presets, config.Preset{Variable: g.origin(r), Option: r.Option, Value: v})
		}
	}
	for _, group := range Idle() {
		for _, name := range group.Names {
			if _, set := g.set[name]; set {
				idle = append(idle, name)
			}
		}
	}
	slices.Sort(idle)
	if len(g.faults) > 0 {
		return nil, nil, errors.Join(g.faults...)
	}
	return presets, idle, nil
}

// given has the variables of an environment, and the faults in the values that were read so far.
type given struct {
	set      map[string]string
	defaults map[string]string
	faulty   map[string]bool
	faults   []error
}

func newGiven(environ []string, rows []Row) *given {
	g := &given{make(map[string]string), make(map[string]string), make(map[string]bool), nil}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if _, twice := g.set[name]; !twice { // as in os.Getenv, the first one counts
			g.set[name] = value
		}
	}
	for i := range rows {
		for _, v := range rows[i].Variables {
			g.defaults[v.Name] = v.Default
		}
	}
	return g
}

// origin returns the name of the variable that has decided the option of r.
func (g *given) origin(r *Row) string {
	for _, v := range r.Variables {
		if _, set := g.set[v.Name]; set {
			return v.Name
		}
	}
	if len(r.Variables) == 0 {
		return "(none)"
	}
	return r.Variables[0].Name + " (not set)"
}
