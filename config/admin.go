package config

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/commands/stats"
)

// Groups says how decisions are counted by group of keys.
func (c *Config) Groups() stats.GroupOptions {
	o := stats.GroupOptions{Near: int(c.Number("metrics-near-limit"))}
	if _, delimiter, ok := strings.Cut(c.Value("metrics-group-by"), " "); ok {
		o.Delimiter, o.Max = delimiter, int(c.Number("metrics-max-groups"))
	}
	return o
}

// AdminAddresses returns the addresses of the option admin-bind, or none if admin-port is 0.
func (c *Config) AdminAddresses() []string {
	if c.Value("admin-port") == "0" {
		return nil
	}
	return strings.Fields(c.Value("admin-bind"))
}

// RefuseReachableAdmin refuses an admin port that other machines can reach without TLS, where
// no user has a password.
func (c *Config) RefuseReachableAdmin(passwords bool) error {
	if passwords || c.Yes("admin-tls") {
		return nil
	}
	for _, a := range c.AdminAddresses() {
		if reachableFromAfar(a) {
			return fmt.Errorf("admin-bind %s lets other machines in without a password: set requirepass, define users, or set admin-tls yes", a)
		}
	}
	return nil
}
