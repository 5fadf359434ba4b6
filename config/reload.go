package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// OnReload adds p to the functions that every Reload calls, after those that were added before.
func (c *Config) OnReload(p Prepare) {
	c.mu.Lock()
	c.prepares = append(c.prepares, p)
	c.mu.Unlock()
}

// Reload reads the configuration again, from the same file, environment and flags, and puts it in
// force. Afterwards the settings are those that a restart would have. If Reload returns an error,
// nothing has changed, and the error has all faults (see [Faults]). If the server has no file, the
// options stay as they are, including the values of CONFIG SET, and the functions of OnReload read
// their files again. Reload may wait for a disk.
func (c *Config) Reload() error {
	for {
		if done, err := c.tryReload(); done || err != nil {
			return err
		}
	}
}

// tryReload is one attempt of Reload. If the configuration has changed while files were read, it
// changes nothing, done is false, and err is nil.
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
	// The options come last: a removed password must stay in force until the users that replace
	// it are.
	for _, apply := range append(applies, put, commit) {
		if apply != nil {
			apply()
		}
	}
	return true, nil
}

// reread returns the configuration that the sources contain now. If there is no file, it returns a
// copy of the present one.
func (c *Config) reread() (*Config, error) {
	if c.file == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		same := Default()
		same.values, same.users, same.origins = slices.Clone(c.values), c.users, c.origins
		return same, nil
	}
	args := slices.Clone(c.from.args)
	args[0] = c.file // the working directory may have changed since the start
	return LoadOver(c.from.presets, args, c.from.environ, bytes.NewReader(c.from.stdin))
}

// changesOfImmutable returns a fault for each setting that is different in next and that only a
// restart can change. faulty says that next has other faults. Then changesOfImmutable considers
// only the settings that were read, because a faulty line may set one that seems to be missing.
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

// adopt replaces the values and the users of c by the values and the users of next, and counts that
// as one change.
func (c *Config) adopt(next *Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed++
	copy(c.values, next.values)
	c.origins = next.origins
	c.users = next.users
	c.idle, c.modules = next.idle, next.modules
}

// Faults returns the single faults that err, an error of this package, consists of; none if err is
// nil.
func Faults(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error }) // any other error is a single fault
	if !ok {
		return []error{err}
	}
	var faults []error
	for _, e := range joined.Unwrap() {
		faults = append(faults, Faults(e)...)
	}
	return faults
}
