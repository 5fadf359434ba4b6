package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/tlsconfig"
)

// Value returns the value of the option called name. It panics if this server has no such option.
func (c *Config) Value(name string) string {
	i, ok := c.byName[name]
	if !ok {
		panic("config: no option " + name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[i]
}

// At returns err, an error about the option called name, with the place where the option was set
// last, if it was set.
func (c *Config) At(name string, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if where := c.origins[name]; where != "" {
		return fmt.Errorf("%s: %w", where, err)
	}
	return err
}

// Number returns the value of the option called name, which must be a number or a size in bytes.
func (c *Config) Number(name string) int64 { return number(c.Value(name)) }

// StoreServers returns the value of the option store-servers. If that is auto, it returns seen, the number of live
// servers. The result is at least 1.
func (c *Config) StoreServers(seen int) int {
	if v := c.Value("store-servers"); v != autoServers {
		return int(number(v))
	}
	return max(seen, 1)
}

// Seconds returns the value of the option called name, which must be a number of seconds.
func (c *Config) Seconds(name string) time.Duration { return seconds(c.Value(name)) }

// Milliseconds returns the value of the option called name, which must be a number of milliseconds.
func (c *Config) Milliseconds(name string) time.Duration {
	return time.Duration(c.Number(name)) * time.Millisecond
}

// Yes reports whether the value of the option called name is yes.
func (c *Config) Yes(name string) bool { return c.Value(name) == "yes" }

// Path returns the path of the file that the option called name gives; "" if it gives none. As in
// Redis, a relative path is relative to the option dir.
func (c *Config) Path(name string) string {
	path := c.Value(name)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Value("dir"), path)
}

// File returns the absolute path of the configuration file; "" if there is none.
func (c *Config) File() string { return c.file }

// Renamed returns the pairs of rename-command: a command and its new name, which is "" for a
// removed command. The caller must not change them.
func (c *Config) Renamed() [][2]string { return c.renamed }

// Idle returns the options of Redis that were given and have no effect here, sorted. The caller
// must not change the result.
func (c *Config) Idle() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle
}

// Modules returns the modules that loadmodule names and that are built in. The caller must not
// change the result.
func (c *Config) Modules() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.modules
}

// Users returns the lines `user name rule ...` of the configuration, without the first word. The
// caller must not change them.
func (c *Config) Users() []acl.Line {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.users
}

// SaveDue reports whether one of the save points has been reached, given the time since the last
// snapshot and the number of changes since then.
func (c *Config) SaveDue(since time.Duration, changes int64) bool {
	return savePoints{}.due(c.Value("save"), since, changes)
}

// FailPolicies returns the values of the option fail-policy by prefix of keys. The prefix "" is for
// all keys.
func (c *Config) FailPolicies() map[string]string { return failPolicies.rules(c.Value("fail-policy")) }

// HotKeys returns the values of the option hot-keys by prefix of keys. The prefix "" is for all
// keys.
func (c *Config) HotKeys() map[string]string { return hotKeys.rules(c.Value("hot-keys")) }

// FailPolicyNames returns the words that the option fail-policy may have. The caller must not
// change them.
func FailPolicyNames() []string { return failPolicies }

// Remote reports whether limits are kept in an external store, by the option store.
func (c *Config) Remote() bool { return c.Value("store") != "" }

// ManualClock reports whether the clock of the server moves only by DEBUG CLOCK ADD.
func (c *Config) ManualClock() bool { return c.Value("clock") == manualClock }

// Kept reports whether the server may keep its state on disk and have replicas: it has no store that does so, and no
// manual clock, whose instants mean nothing to a later start.
func (c *Config) Kept() bool { return !c.Remote() && !c.ManualClock() }

// TLSOptions returns the settings of TLS.
func (c *Config) TLSOptions() *tlsconfig.Options {
	return &tlsconfig.Options{
		CertFile:    c.Path("tls-cert-file"),
		KeyFile:     c.Path("tls-key-file"),
		KeyFilePass: c.Value("tls-key-file-pass"),
		CAFile:      c.Path("tls-ca-cert-file"),
		CADir:       c.Path("tls-ca-cert-dir"),
		AuthClients: tlsconfig.ClientAuth(c.Value("tls-auth-clients")),
		Protocols:   strings.Fields(c.Value("tls-protocols")),
		Ciphers:     tlsconfig.SplitCiphers(c.Value("tls-ciphers")),
		Tickets:     c.Yes("tls-session-caching"),
	}
}
