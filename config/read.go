package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/tlsconfig"
)

// Value returns the value of an option of this server. It panics for an unknown name.
func (c *Config) Value(name string) string {
	i, ok := c.byName[name]
	if !ok {
		panic("config: no option " + name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[i]
}

// At returns err with the place where an option was set last, if it was set.
func (c *Config) At(name string, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if where := c.origins[name]; where != "" {
		return fmt.Errorf("%s: %w", where, err)
	}
	return err
}

// Number returns the value of an option that is a number or a size.
func (c *Config) Number(name string) int64 { return number(c.Value(name)) }

// Seconds returns the value of an option in seconds.
func (c *Config) Seconds(name string) time.Duration { return seconds(c.Value(name)) }

// Milliseconds returns the value of an option in milliseconds.
func (c *Config) Milliseconds(name string) time.Duration {
	return time.Duration(c.Number(name)) * time.Millisecond
}

// Yes reports whether the value of an option is yes.
func (c *Config) Yes(name string) bool { return c.Value(name) == "yes" }

// Path returns the path of the file that an option names, or "". It is relative to dir,
// as in Redis.
func (c *Config) Path(name string) string {
	path := c.Value(name)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Value("dir"), path)
}

// File returns the absolute path of the configuration file, or "" without one.
func (c *Config) File() string { return c.file }

// Renamed returns the commands that rename-command renames with their new names, "" for removed
// ones.
func (c *Config) Renamed() [][2]string { return c.renamed }

// Idle returns the options of Redis that were given and have no effect here, sorted.
func (c *Config) Idle() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle
}

// Modules returns the modules that were named and are built in.
func (c *Config) Modules() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.modules
}

// Users returns the lines `user name rule ...`, without the first word.
func (c *Config) Users() []acl.Line {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.users
}

// SaveDue reports whether one of the points of the option save has been reached.
func (c *Config) SaveDue(since time.Duration, changes int64) bool {
	return savePoints{}.due(c.Value("save"), since, changes)
}

// FailPolicies returns the option fail-policy by prefix; that of "" is for all keys.
func (c *Config) FailPolicies() map[string]string { return failPolicies.rules(c.Value("fail-policy")) }

// HotKeys returns the option hot-keys by prefix; that of "" is for all keys.
func (c *Config) HotKeys() map[string]string { return hotKeys.rules(c.Value("hot-keys")) }

// FailPolicyNames returns the choices of the option fail-policy.
func FailPolicyNames() []string { return failPolicies }

// Remote reports whether limits are in a store elsewhere.
func (c *Config) Remote() bool { return c.Value("store") != "" }

// TLSOptions returns what the configuration says about TLS.
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
