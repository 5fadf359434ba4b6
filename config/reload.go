package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// OnReload has p take part in every Reload, after those that came before.
func (c *Config) OnReload(p Prepare) {
	c.mu.Lock()
	c.prepares = append(c.prepares, p)
	c.mu.Unlock()
}

// Reload reads the configuration again, from the same file, environment and flags, and puts it
// in force: afterwards the settings are those that a restart would have. Either all of it is
// in force, or nothing has changed and the error lists all faults ([Faults]). Without a file
// the options stay as they are, CONFIG SET included, and what takes part reads its files again.
func (c *Config) Reload() error {
	for {
		if done, err := c.tryReload(); done || err != nil {
			return err
		}
	}
}

// tryReload is Reload unless the configuration changes while files are read: then it has done
// nothing.
func (c *Config) tryReload() (done bool, err error) {
	c.mu.Lock()
	seen := c.changed
	c.mu.Unlock()
	next, err := c.reread()
	faults := Faults(err)
	faults = append(faults, c.changesOfImmutable(next, len(faults) > 0)...)
	c.mu.Lock()
	prepares, put, last := slices.Clone(c.prepares), c.apply, c.last.prepare
	c.mu.Unlock()
	applies := make([]func(), 0, len(prepares)+1)
	for _, prepare := range prepares {
		apply, err := prepare(next)
		faults = append(faults, Faults(err)...)
		applies = append(applies, apply)
	}
	if len(faults) > 0 {
		return false, errors.Join(faults...)
	}
	c.setting.Lock()
	defer c.setting.Unlock()
	if c.changedSince(seen) {
		return false, nil
	}
	var commit func()
	if last != nil {
		if commit, err = last(next); err != nil {
			return false, err
		}
	}
	c.adopt(next)
	// The options come last: a password that is gone from them must not be in force without the
	// users that take its place.
	for _, apply := range append(applies, put, commit) {
		if apply != nil {
			apply()
		}
	}
	return true, nil
}

// reread returns what the sources say now.
func (c *Config) reread() (*Config, error) {
	if c.file == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		same := Default()
		same.values, same.users, same.origins = slices.Clone(c.values), c.users, c.origins
		return same, nil
	}
	args := slices.Clone(c.from.args)
	args[0] = c.file // the working directory may be another one by now
	return LoadFrom(args, c.from.environ, bytes.NewReader(c.from.stdin))
}

// changesOfImmutable returns a fault for each setting that only a restart can change. With
// other faults it tells those only that were read: what is missing may be one of the others.
func (c *Config) changesOfImmutable(next *Config, faulty bool) (faults []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fault := func(name string) {
		where := c.file
		if at := next.origins[name]; at != "" {
			where = at
		}
		faults = append(faults, fmt.Errorf("%s: option %q cannot change while the server runs: restart it", where, name))
	}
	for i, o := range c.table {
		if !o.mutable && c.values[i] != next.values[i] && (!faulty || next.origins[o.name] != "") {
			fault(o.name)
		}
	}
	if !slices.Equal(c.renamed, next.renamed) {
		fault("rename-command")
	}
	return faults
}

// adopt takes the values of next.
func (c *Config) adopt(next *Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed++
	copy(c.values, next.values)
	c.origins = next.origins
	c.users = next.users
	c.idle, c.modules = next.idle, next.modules
}

// Faults returns the faults that errors of this package are joined from.
func Faults(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error }) // only what was joined is taken apart
	if !ok {
		return []error{err}
	}
	var faults []error
	for _, e := range joined.Unwrap() {
		faults = append(faults, Faults(e)...)
	}
	return faults
}
