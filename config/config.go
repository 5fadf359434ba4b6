// Package config reads the settings of a server from a file with the syntax of redis.conf, the
// environment and flags. [Config] has the values. Each option is one entry of a table, from which
// CONFIG GET and SET, --help, the sample file and the page of options derive.
//
// The file options.go lists the groups of options. A function of each group returns its options.
// The function is in options.go, or in a file of the group, such as option_tls.go, together with
// the kinds of values that only this group has. The package does not implement the effects of
// options: the server reads their values.
package config

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/cellserver/cellserver/acl"
)

// Config has the settings of a server. Any goroutine may call its methods.
type Config struct {
	table  []option
	byName map[string]int

	// setting is held from the change of a value until the new value is in force. Event loops may
	// wait for it, so files are not read or written while it is held.
	setting   sync.Mutex
	rewriting sync.Mutex // held while Rewrite changes the configuration file

	mu     sync.Mutex
	values []string // the values in the order of table, in the form that their kinds return; guarded by mu
	apply  func()   // function that puts changed values in force; nil before OnChange; guarded by mu
	// prepares are called by Reload, and checks by Set. Both are guarded by mu.
	prepares []Prepare
	checks   []setCheck
	last     setCheck // the Prepare that OnCommit has added; guarded by mu
	changed  uint64   // the number of changes of values or users so far; guarded by mu
	cores    int      // GOMAXPROCS at the start, which the limits of a container may reduce

	idle    []string          // the options of Redis that were given and have no effect, sorted; guarded by mu
	modules []string          // the modules that loadmodule names and that are built in; guarded by mu
	users   []acl.Line        // the lines `user name rule ...`, without the first word; guarded by mu
	origins map[string]string // the place at which each option was set last, "" for CONFIG SET; guarded by mu

	// The fields below do not change after Load.
	file    string      // the absolute path of the configuration file; "" if there is none
	renamed [][2]string // the pairs of rename-command: a command and its new name, which is "" for a removed command
	from    sources     // the sources that Reload reads again
	redis   map[string]redisOption
}

// Prepare takes part in a reload. It checks what the configuration next requires of a part of the
// server, such as its users or certificates, and returns apply, which puts that in force and cannot
// fail. Prepare itself changes nothing. apply may be nil. A configuration that has other faults is
// prepared, too, so that an operator sees all faults at once.
type Prepare func(next *Config) (apply func(), err error)

// setCheck is a Prepare that Set calls if concerns returns true for one of the changed options.
type setCheck struct {
	concerns func(name string) bool
	prepare  Prepare
}

// sources are the presets, the arguments, the environment variables of this server and the standard input
// from which a configuration was read.
type sources struct {
	presets       []Preset
	args, environ []string
	stdin         []byte
}

// Default returns the settings of a server that was given no configuration.
func Default() *Config {
	c := &Config{table: options(), byName: make(map[string]int), origins: make(map[string]string), cores: runtime.GOMAXPROCS(0), redis: redisByName()}
	for i, o := range c.table {
		value, err := o.kind.parse(o.def)
		if err != nil {
			panic(fmt.Sprintf("config: default of %s: %v", o.name, err))
		}
		c.byName[o.name] = i
		if o.alias != "" {
			c.byName[o.alias] = i
		}
		c.values = append(c.values, value)
	}
	return c
}

// OnChange sets f as the function that every successful Set and Reload calls to put the new values
// in force.
func (c *Config) OnChange(f func()) {
	c.mu.Lock()
	c.apply = f
	c.mu.Unlock()
}
