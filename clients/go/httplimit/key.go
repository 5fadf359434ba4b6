package httplimit

import (
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// Key returns the key under which a request counts. An empty key means that the request is not
// limited.
type Key func(*http.Request) (string, error)

// ErrAddress says that the options of [IPWith] are wrong.
var ErrAddress = rules.ErrTrust

// Trust says which addresses in X-Forwarded-For are believed.
type Trust = rules.Trust

// TrustedHops says that n proxies of our own are before this server, each of which appends an address to X-Forwarded-For.
func TrustedHops(n int) Trust { return rules.Hops(n) }

// TrustedNetworks says that our own proxies are in these networks, such as 10.0.0.0/8. An address is a network of its own.
func TrustedNetworks(networks ...string) Trust { return rules.Networks(networks...) }

// V6Prefix says how many bits of an IPv6 address make one key, from 48 to 64; the default is 64.
func V6Prefix(bits int) Trust { return rules.V6(bits) }

// Listens says that requests come in at the address of a listener. At a Unix socket a connection has no address, so that [IPWith] fails
// there without [TrustedHops], at start and not at the first request.
func Listens(on net.Addr) Trust { return rules.Listens(on) }

// unbelieved limits the warning about ignored header fields to one in each process.
var unbelieved sync.Once

// IP returns the key for the address of the connection: an IPv4 address, or the network of 64 bits of an IPv6 address.
// X-Forwarded-For is not believed; the first request that has it is one line in the log.
func IP() Key { return addressKey(rules.Addresses{V6Prefix: rules.MaxV6Prefix}) }

// IPWith returns the key for the address of the client, which proxies of our own write into X-Forwarded-For. Without options it is
// that of [IP]. The error wraps [ErrAddress].
func IPWith(options ...Trust) (Key, error) {
	a, err := rules.NewAddresses(options...)
	if err != nil {
		return nil, err
	}
	return addressKey(a), nil
}

// addressKey returns the key for the address that a finds.
func addressKey(a rules.Addresses) Key {
	return func(r *http.Request) (string, error) {
		lines := r.Header.Values("X-Forwarded-For")
		if len(lines) > 0 && !a.Believes() {
			unbelieved.Do(func() {
				slog.Warn("X-Forwarded-For is not believed; behind a proxy all clients share one limit until IPWith has TrustedHops or TrustedNetworks")
			})
		}
		return a.Key(r.RemoteAddr, lines)
	}
}

// Header returns the value of a header field as the key. If secret is set, the key is a hash of it, so that no token is in the
// server. A request without the field is not limited.
func Header(name string, secret bool) Key {
	return func(r *http.Request) (string, error) {
		v := r.Header.Get(name)
		if v == "" || !secret {
			return v, nil
		}
		return rules.Digest(v), nil
	}
}

// Combine returns a key of several keys. If one of them is empty, the request is not limited.
func Combine(keys ...Key) Key {
	return func(r *http.Request) (string, error) {
		parts := make([]string, len(keys))
		for i, k := range keys {
			part, err := k(r)
			if err != nil || part == "" {
				return "", err
			}
			parts[i] = part
		}
		return rules.Combine(parts...), nil
	}
}
