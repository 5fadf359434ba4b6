package config

import (
	"slices"
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// Get implements [env.Settings]. It includes the older names of options, and the options of Redis
// that have no effect.
func (c *Config) Get(match func(name string) bool) (pairs [][2]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, o := range c.table {
		value := c.values[i]
		if o.show != nil {
			value = o.show(value)
		}
		if match(o.name) {
			pairs = append(pairs, [2]string{o.name, value})
		}
		if o.alias != "" && match(o.alias) {
			pairs = append(pairs, [2]string{o.alias, value})
		}
	}
	for _, g := range redisOptions() {
		for _, o := range g.options {
			pairs = append(pairs, o.shown(match)...)
		}
	}
	return pairs
}

// Set implements [env.Settings]. Either all pairs take effect, or none and Set returns an error.
// Set may wait for a disk, because functions of OnSet read files.
func (c *Config) Set(pairs [][2]string) resp.Error {
	for {
		if done, err := c.trySet(pairs); done || err != "" {
			return err
		}
	}
}

// ReadsFiles implements [env.Settings]. It reports whether Set would call a function of OnSet for
// one of pairs. Such a function may read files.
func (c *Config) ReadsFiles(pairs [][2]string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.checks, func(ch setCheck) bool { return ch.index(pairs) >= 0 })
}

// trySet is one attempt of Set. If the configuration has changed while files of options were read,
// it changes nothing, done is false, and err is "".
func (c *Config) trySet(pairs [][2]string) (done bool, err resp.Error) {
	c.mu.Lock()
	parsed, err := c.changes(pairs)
	if err != "" {
		c.mu.Unlock()
		return false, err
	}
	checks, last, seen := slices.Clone(c.checks), c.last, c.changed
	next := c.with(parsed)
	c.mu.Unlock()
	applies, err := check(next, checks, pairs)
	if err != "" {
		return false, err
	}
	c.setting.Lock()
	defer c.setting.Unlock()
	if c.changedSince(seen) {
		return false, ""
	}
	commit, err := check(next, []setCheck{last}, pairs)
	if err != "" {
		return false, err
	}
	c.mu.Lock()
	c.changed++
	for i, value := range parsed {
		if c.values[i] != value {
			c.values[i], c.origins[c.table[i].name] = value, ""
		}
	}
	applies = slices.Concat(applies, []func(){c.apply}, commit)
	c.mu.Unlock()
	for _, apply := range applies {
		if apply != nil {
			apply()
		}
	}
	return true, ""
}

// changedSince reports whether values or users have changed since c.changed had the value seen.
func (c *Config) changedSince(seen uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed != seen
}

// OnSet adds p to the functions that Set calls for an option for which concerns returns true. Set
// calls p even if the value stays the same, because the option may name a file with new content. p
// may wait for a disk.
func (c *Config) OnSet(concerns func(name string) bool, p Prepare) {
	c.mu.Lock()
	c.checks = append(c.checks, setCheck{concerns, p})
	c.mu.Unlock()
}

// OnCommit sets p as the function that every Reload calls last, and that every Set of an option for
// which concerns returns true calls last. p is called only if no other function has found a fault.
// If p finds none either, the function that p returns is called after the functions of the others.
// So p may acquire a resource, such as a port, that it would otherwise have to release again.
func (c *Config) OnCommit(concerns func(name string) bool, p Prepare) {
	c.mu.Lock()
	c.last = setCheck{concerns, p}
	c.mu.Unlock()
}

// with returns a copy of the configuration with the values parsed, by the index of the option. c.mu
// is held.
func (c *Config) with(parsed map[int]string) *Config {
	next := Default()
	next.values, next.users = slices.Clone(c.values), c.users
	for i, value := range parsed {
		next.values[i] = value
	}
	return next
}

// index returns the index of the first of pairs for whose name concerns returns true; -1 if there
// is none.
func (ch *setCheck) index(pairs [][2]string) int {
	return slices.IndexFunc(pairs, func(p [2]string) bool { return ch.concerns(strings.ToLower(p[0])) })
}

// check calls the functions in checks that are concerned with pairs, for the configuration next. It
// returns their results, or the first error.
func check(next *Config, checks []setCheck, pairs [][2]string) (applies []func(), err resp.Error) {
	for _, ch := range checks {
		if ch.prepare == nil {
			continue
		}
		i := ch.index(pairs)
		if i < 0 {
			continue
		}
		apply, err := ch.prepare(next)
		if err != nil {
			why := strings.Join(strings.Fields(err.Error()), " ") // the text of the error on one line
			return nil, resp.Error("ERR CONFIG SET failed (possibly related to argument '" + pairs[i][0] + "') - " + why)
		}
		applies = append(applies, apply)
	}
	return applies, ""
}

// changes checks pairs, the arguments of Set, and returns the new values of this server's options
// by their index; or an error. c.mu is held.
func (c *Config) changes(pairs [][2]string) (map[int]string, resp.Error) {
	parsed, seen := make(map[int]string, len(pairs)), make(map[string]bool, len(pairs))
	for _, p := range pairs {
		var value, why, canonical string
		name := strings.ToLower(p[0])
		i, ours := c.byName[name]
		redis, known := c.redis[name]
		switch {
		case ours:
			canonical = c.table[i].name
			value, why = c.change(i, p[1])
		case known:
			canonical = redis.name
			why = changeRedis(redis, p[1])
		default:
			return nil, resp.Error("ERR Unknown option or number of arguments for CONFIG SET - '" + p[0] + "'")
		}
		if seen[canonical] {
			why = "duplicate parameter"
		}
		if why != "" {
			return nil, resp.Error("ERR CONFIG SET failed (possibly related to argument '" + p[0] + "') - " + why)
		}
		if seen[canonical] = true; ours {
			parsed[i] = value
		}
	}
	return parsed, ""
}

// parse returns the new value of the option with the index i in the form that CONFIG GET shows,
// including the parts of its value that value does not mention.
func (c *Config) parse(i int, value string) (string, error) {
	if k, ok := c.table[i].kind.(outputLimits); ok {
		return k.change(c.values[i], value)
	}
	return c.table[i].kind.parse(value)
}

// change checks value as a new value of the option with the index i, and returns it in the form
// that CONFIG GET shows; why is the reason if it is refused. An immutable option accepts its
// present value, because programs set the options that they need when they start, such as
// appendonly no.
func (c *Config) change(i int, value string) (parsed, why string) {
	parsed, err := c.parse(i, value)
	switch {
	case !c.table[i].mutable && (err != nil || parsed != c.values[i]):
		return "", "can't set immutable config"
	case err != nil:
		return "", err.Error()
	}
	return parsed, ""
}
