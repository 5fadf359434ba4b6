package config

import (
	"fmt"
	"net"
	"strings"
)

// checkExposure refuses addresses that other machines can reach without a password,
// unless the configuration allows that explicitly. Where it defines users, loadUsers does.
func (c *Config) checkExposure() error {
	if c.Value("requirepass") != "" || c.DefinesUsers() {
		return nil
	}
	return c.RefuseReachable()
}

// RefuseReachable is checkExposure where default needs no password.
func (c *Config) RefuseReachable() error {
	if a := c.Reachable(); a != "" && c.Yes("protected-mode") {
		return c.At("bind", fmt.Errorf("bind %s lets other machines in without a password: set requirepass, or protected-mode no", a))
	}
	return nil
}

// Reachable returns an address of bind that other machines can reach, or "".
func (c *Config) Reachable() string {
	for _, a := range c.Addresses() {
		if reachableFromAfar(a) {
			return a
		}
	}
	return ""
}

// DefinesUsers reports whether the configuration says who may log in.
func (c *Config) DefinesUsers() bool { return c.Value("aclfile") != "" || len(c.Users()) > 0 }

// Addresses returns the addresses of the option bind, or none if port and tls-port are 0. An
// empty bind has none, as in Redis: a value that a script left out must not open the server.
func (c *Config) Addresses() []string {
	if c.Value("port") == "0" && c.Value("tls-port") == "0" {
		return nil
	}
	return strings.Fields(c.Value("bind"))
}

// reachableFromAfar reports whether other machines may reach an address of bind.
func reachableFromAfar(address string) bool {
	host := strings.TrimPrefix(address, "-")
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}
