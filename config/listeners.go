package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Addresses returns the addresses of the option bind; none if port and tls-port are 0. As in Redis,
// an empty bind has no addresses: a value that a script left out must not open the server to other
// machines.
func (c *Config) Addresses() []string {
	if c.Value("port") == "0" && c.Value("tls-port") == "0" {
		return nil
	}
	return strings.Fields(c.Value("bind"))
}

// AdminAddresses returns the addresses of the option admin-bind; none if admin-port is 0.
func (c *Config) AdminAddresses() []string {
	if c.Value("admin-port") == "0" {
		return nil
	}
	return strings.Fields(c.Value("admin-bind"))
}

// checkExposure returns an error if other machines can reach the server without a password, unless
// the configuration permits that explicitly. If the configuration defines users, checkExposure does
// nothing; package server makes the check when it knows the users.
func (c *Config) checkExposure() error {
	if c.Value("requirepass") != "" || c.DefinesUsers() {
		return nil
	}
	return c.RefuseReachable()
}

// RefuseReachable returns an error if other machines can reach an address of bind and
// protected-mode is on. It is for a server whose user default needs no password.
func (c *Config) RefuseReachable() error {
	if a := c.Reachable(); a != "" && c.Yes("protected-mode") {
		return c.At("bind", fmt.Errorf("bind %s lets other machines in without a password: set requirepass, or protected-mode no", a))
	}
	return nil
}

// Reachable returns an address of bind that other machines can reach; "" if there is none.
func (c *Config) Reachable() string {
	for _, a := range c.Addresses() {
		if reachableFromAfar(a) {
			return a
		}
	}
	return ""
}

// DefinesUsers reports whether the configuration defines users, by aclfile or by lines `user`.
func (c *Config) DefinesUsers() bool { return c.Value("aclfile") != "" || len(c.Users()) > 0 }

// RefuseReachableAdmin returns an error if other machines can reach the admin port without a
// password and without TLS. passwords says that a user has a password; then there is no error.
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

// reachableFromAfar reports whether other machines may reach address, an address of bind. It
// returns true for any name except localhost.
func reachableFromAfar(address string) bool {
	host := strings.TrimPrefix(address, "-")
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// ownBinds are the options with the addresses of ports for which the option bind does not apply.
var ownBinds = map[string]string{"admin-port": "admin-bind", "http-port": "http-bind", "rls-port": "rls-bind"}

// checkListeners returns an error if two listeners cannot be open at the same time, because they
// have the same port of the same address.
func (c *Config) checkListeners() error {
	type place struct{ option, bind, address, port string }
	var taken []place
	var faults []error
	for _, option := range []string{"port", "tls-port", "admin-port", "http-port", "rls-port"} {
		port, bind, addresses := c.Value(option), "bind", strings.Fields(c.Value("bind"))
		if own, found := ownBinds[option]; found {
			bind, addresses = own, strings.Fields(c.Value(own))
		}
		if port == "0" {
			continue
		}
		for _, a := range addresses {
			p := place{option, bind, a, port}
			i := slices.IndexFunc(taken, func(other place) bool { return other.port == port && overlap(other.address, a) })
			switch {
			case i < 0:
				taken = append(taken, p)
			case taken[i].option == option:
				faults = append(faults, c.At(bind, fmt.Errorf("%s has %s and %s, which are the same address", bind, taken[i].address, a)))
			default:
				faults = append(faults, c.At(option, fmt.Errorf("%s %s is the port of option %q as well, at %s", option, port, taken[i].option, a)))
			}
			if i >= 0 {
				break // one fault for each port is enough
			}
		}
	}
	return errors.Join(faults...)
}

// overlap reports whether listeners on a and b, addresses of bind, cannot have the same port: the
// addresses are equal, or one stands for all addresses of the other's family.
func overlap(a, b string) bool {
	a, b = spelled(a), spelled(b)
	if a == b {
		return true
	}
	whole := func(all, one string) bool {
		ip := net.ParseIP(one)
		switch {
		case ip == nil: // a name is resolved only when the server listens
			return false
		case all == "0.0.0.0":
			return ip.To4() != nil
		}
		return all == "::" && ip.To4() == nil
	}
	return whole(a, b) || whole(b, a)
}

// spelled returns address, an address of bind, in a canonical spelling.
func spelled(address string) string {
	address = strings.TrimPrefix(address, "-")
	switch address {
	case "*":
		return "0.0.0.0"
	case "::*":
		return "::"
	}
	if ip := net.ParseIP(address); ip != nil {
		return ip.String()
	}
	return strings.ToLower(address)
}
