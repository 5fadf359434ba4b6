// Package config reads the settings of a server from a file with the syntax of redis.conf, the
// environment and flags. [Config] has the values. Each option is one entry of a table, from which
// CONFIG GET and SET, --help, the sample file and the page of options derive.
//
// The file options.go has the table, with a function for each group of options. Groups with their
// own kinds of values have a file option_x.go with these kinds. The package does not implement
// the effects of options: the server reads their values.
package config

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/cellserver/cellserver/acl"
)

// Config is the settings of a server. Its methods may be called from any
// goroutine.
type Config struct {
	table  []option
	byName map[string]int

	// setting is held from the change of a value until the new value is in force. Event loops may
	// wait for it, so no file is read or written while it is held.
	setting   sync.Mutex
	rewriting sync.Mutex // held by Rewrite

	mu     sync.Mutex
	values []string // guarded by mu; in the order of table, each accepted by its kind
	apply  func()   // guarded by mu: puts changed values in force
	// prepares take part in Reload, and checks in Set; guarded by mu.
	prepares []Prepare
	checks   []setCheck
	last     setCheck // guarded by mu: see OnCommit
	changed  uint64   // guarded by mu: the number of changes of values or users
	cores    int      // GOMAXPROCS at the start, which respects the limits of a container

	idle    []string          // guarded by mu; options of Redis that were given and have no effect, sorted
	modules []string          // guarded by mu; modules that were named and are built in
	users   []acl.Line        // guarded by mu; lines `user name rule ...`, without the first word
	origins map[string]string // guarded by mu; where each option was given last, "" for CONFIG SET

	// The fields below do not change after Load.
	file    string      // the configuration file, "" without one
	renamed [][2]string // commands with their new names, "" for removed ones
	from    sources     // the sources that Reload reads again
	redis   map[string]redisOption
}

// Prepare takes part in a reload. It checks what next requires of a part of the server, such as a
// file of users or certificates, and returns apply, which puts that in force and cannot fail. It
// changes nothing itself. apply may be nil. A configuration with other faults is prepared, too,
// so that an operator sees all faults at once.
type Prepare func(next *Config) (apply func(), err error)

// setCheck is a Prepare that Set calls for certain options.
type setCheck struct {
	concerns func(name string) bool
	prepare  Prepare
}

// sources are what a configuration was read from.
type sources struct {
	args, environ []string
	stdin         []byte
}

// Default returns the settings of a server without any configuration.
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

// OnChange makes every successful Set call f.
func (c *Config) OnChange(f func()) {
	c.mu.Lock()
	c.apply = f
	c.mu.Unlock()
}
