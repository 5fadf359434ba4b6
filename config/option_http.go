package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// httpOptions returns the options about the port for decisions over HTTP.
func httpOptions() []option {
	return []option{
		{name: "http-port", def: "0", kind: integer{0, 65535, ""}, doc: "TCP port for decisions of policies over HTTP, for programs and gateways. 0 listens on no port. See docs/http.md."},
		{name: "http-bind", def: "127.0.0.1 -::1", kind: words{}, doc: "Addresses of http-port, as in bind. Protected mode holds for this port, too."},
		{name: "http-tls", def: "no", kind: boolean{}, doc: "Encrypt http-port, with the certificates of tls-port. tls-auth-clients and tls-auth-clients-user hold for this port, too."},
		{name: "http-user", def: "default", kind: text{}, doc: "User of requests to http-port without a password and a certificate. The user default is one only while it needs no password. Any other user is one even if it has a password."},
		{name: "http-gateway", def: "none", kind: choice{"none", "nginx", "traefik", "caddy", "envoy"}, doc: "Gateway that asks http-port for checks. It says where the path, the method and the host of the original request are."},
		{name: "http-trusted-proxies", def: "", kind: networks{}, doc: "Addresses and networks whose header fields about the original request and its client count, such as 10.0.0.0/8."},
		{name: "http-headers", def: "draft", kind: choice{"none", "draft", "x", "both"}, doc: "Header fields of answers of http-port: those of the IETF draft, X-RateLimit-*, or both. With none there is no Retry-After either."},
	}
}

// networks is the kind of a list of IP addresses and networks, separated by spaces.
type networks struct{}

func (networks) parse(v string) (string, error) {
	all := strings.Fields(v)
	for i, word := range all {
		n, err := network(word)
		if err != nil {
			return "", fmt.Errorf("argument has %q, which is no address or network such as 10.0.0.0/8", word)
		}
		all[i] = n.String()
	}
	return strings.Join(all, " "), nil
}

func (networks) hint() string { return "networks" }

// of returns the networks in v, which parse has accepted.
func (networks) of(v string) (list []netip.Prefix) {
	for word := range strings.FieldsSeq(v) {
		if n, err := network(word); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// mapped is the number of bits before the IPv4 address in ::ffff:10.0.0.1.
const mapped = 96

// network parses a network, or an address, for which it returns the network with only that address. An IPv4 network in
// the form of IPv6 becomes one of IPv4.
func network(word string) (netip.Prefix, error) {
	n, err := netip.ParsePrefix(word)
	if err != nil {
		var a netip.Addr
		if a, err = netip.ParseAddr(word); err == nil {
			n, err = a.WithZone("").Prefix(a.BitLen())
		}
	}
	if err == nil && n.Addr().Is4In6() && n.Bits() >= mapped {
		n = netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-mapped)
	}
	return n.Masked(), err //nolint:wrapcheck // parse says what is wrong
}

// HTTPAddresses returns the addresses of the option http-bind; none if http-port is 0.
func (c *Config) HTTPAddresses() []string {
	if c.Value("http-port") == "0" {
		return nil
	}
	return strings.Fields(c.Value("http-bind"))
}

// HTTPTrusted returns the networks of the option http-trusted-proxies.
func (c *Config) HTTPTrusted() []netip.Prefix { return networks{}.of(c.Value("http-trusted-proxies")) }
