package rules

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// Addresses says how the address of a client is found: see [Addresses.Key]. Without Hops and Networks, the address of
// the peer is used, and no header field is believed.
type Addresses struct {
	// Hops is the number of proxies that the operator runs, including the peer, from 0. Each proxy appends the address
	// of its peer to X-Forwarded-For.
	Hops int
	// Networks are the networks of the operator's proxies. Hops and Networks exclude each other.
	Networks []netip.Prefix
	// V6Prefix is the number of bits of an IPv6 address that the key has, from 48 to 64.
	V6Prefix int
	socket   bool // peers have no address
}

// Believes reports whether an entry of X-Forwarded-For is believed.
func (a *Addresses) Believes() bool { return a.Hops > 0 || len(a.Networks) > 0 }

// These are the least and the largest V6Prefix.
const (
	MinV6Prefix = 48
	MaxV6Prefix = 64
)

// ErrPeer means that the peer has no address, as with a Unix socket, and that no header field identifies the client.
var ErrPeer = errors.New("the peer has no address: a Unix socket needs trusted hops")

// Unknown is the key of all clients whose address is not known, because neither the peer nor the header field has one.
const Unknown = "unknown"

// Key returns the key of a client. peer is the address of the connection, with a port or without one, and
// forwarded has the lines of X-Forwarded-For in their order. The key is an IPv4 address, or the network of an
// IPv6 address.
//
// The entries of all lines are joined; the address of the peer is behind them. With Hops the client is the
// entry so many places before the peer. If there are fewer entries, the request has come round the proxy, and
// the client is the peer. With Networks the client is the first from the right that is in none of them. If all
// are, it is the leftmost. If the entry that is looked at is not an address, the client is the peer.
//
// If the peer has no address, the error is [ErrPeer] unless Hops is positive; then the entry counts all the same,
// and the key is [Unknown] if it is missing or not an address.
func (a *Addresses) Key(peer string, forwarded []string) (string, error) {
	own, ok := parseAddress(peer)
	if !ok && a.Hops == 0 {
		return "", ErrPeer
	}
	found, known := own, ok
	switch {
	case a.Hops > 0:
		if entry, there := hop(forwarded, a.Hops); there {
			if client, ok := parseAddress(entry); ok {
				found, known = client, true
			}
		}
	case len(a.Networks) > 0:
		found = a.untrusted(own, forwarded)
	}
	if !known {
		return Unknown, nil
	}
	return a.text(found), nil
}

// hop returns the entry n places before the peer.
func hop(lines []string, n int) (entry string, ok bool) {
	for entry := range backward(lines) {
		if n--; n == 0 {
			return entry, true
		}
	}
	return "", false
}

// untrusted returns the first address from the right that is in no trusted network.
func (a *Addresses) untrusted(own netip.Addr, lines []string) netip.Addr {
	if !a.trusts(own) {
		return own
	}
	client := own
	for entry := range backward(lines) {
		next, ok := parseAddress(entry)
		if !ok {
			return own
		}
		client = next
		if !a.trusts(client) {
			return client
		}
	}
	return client
}

// backward yields the entries of all lines from the last one on. It splits no more than is asked for, since the
// header is as long as a client likes.
func backward(lines []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := len(lines) - 1; i >= 0; i-- {
			for line := lines[i]; ; {
				at := strings.LastIndexByte(line, ',')
				if !yield(strings.Trim(line[at+1:], " \t")) {
					return
				}
				if at < 0 {
					break
				}
				line = line[:at]
			}
		}
	}
}

func (a *Addresses) trusts(addr netip.Addr) bool {
	for _, n := range a.Networks {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}

// text returns the key for an address.
func (a *Addresses) text(addr netip.Addr) string {
	if addr.Is4() {
		return addr.String()
	}
	bits := a.V6Prefix
	if bits == 0 {
		bits = MaxV6Prefix
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return addr.String()
	}
	return network.String()
}

// parseAddress returns the address in text, without its port, brackets and zone. An IPv6 address that stands for
// an IPv4 address becomes that.
func parseAddress(text string) (netip.Addr, bool) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		host, port, closed := strings.Cut(inner, "]")
		if !closed || port != "" && !isPort(port) || !strings.Contains(host, ":") {
			return netip.Addr{}, false
		}
		text = host
	} else if host, _, ok := strings.Cut(text, ":"); ok && strings.Count(text, ":") == 1 {
		if !isPort(text[len(host):]) {
			return netip.Addr{}, false
		}
		text = host
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, false
	}
	return addr.WithZone("").Unmap(), true
}

// isPort reports whether text is a colon and a port.
func isPort(text string) bool {
	digits, ok := strings.CutPrefix(text, ":")
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return false
	}
	_, err := strconv.ParseUint(digits, 10, 16)
	return err == nil
}
