package grpclimit

import (
	"context"
	"log/slog"
	"sync"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/cellserver/cellserver/clients/go/httplimit"
	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// Key returns for whom a call of a method such as "/helloworld.Greeter/SayHello" counts. ctx has its peer and its metadata. An empty
// key means that the call is not limited.
type Key func(ctx context.Context, method string) (string, error)

// unbelieved makes sure that there is one warning in a process.
var unbelieved sync.Once

// IP returns the key for the address of the connection: an IPv4 address, or the network of 64 bits of an IPv6 address.
// x-forwarded-for is not believed; the first call that has it is one line in the log.
func IP() Key { return addressKey(rules.Addresses{V6Prefix: rules.MaxV6Prefix}) }

// IPWith returns the key for the address of the client, which proxies of our own write into x-forwarded-for. The options are those
// of httplimit.IPWith, as is the error.
func IPWith(options ...httplimit.Trust) (Key, error) {
	a, err := rules.NewAddresses(options...)
	if err != nil {
		return nil, err
	}
	return addressKey(a), nil
}

// addressKey returns the key for the address that a finds.
func addressKey(a rules.Addresses) Key {
	return func(ctx context.Context, _ string) (string, error) {
		lines := metadata.ValueFromIncomingContext(ctx, "x-forwarded-for")
		if len(lines) > 0 && !a.Believes() {
			unbelieved.Do(func() {
				slog.Warn("x-forwarded-for is not believed; behind a proxy all clients share one limit until IPWith has TrustedHops or TrustedNetworks")
			})
		}
		address := ""
		if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
			address = p.Addr.String()
		}
		return a.Key(address, lines)
	}
}

// Metadata returns the first value of a name in the metadata as the key. If secret is set, the key is a hash of it, so that no token
// is in the server. A call without the name is not limited.
func Metadata(name string, secret bool) Key {
	return func(ctx context.Context, _ string) (string, error) {
		values := metadata.ValueFromIncomingContext(ctx, name)
		switch {
		case len(values) == 0 || values[0] == "":
			return "", nil
		case secret:
			return rules.Digest(values[0]), nil
		}
		return values[0], nil
	}
}

// Method returns the name of the method as the key, such as "/helloworld.Greeter/SayHello".
func Method() Key {
	return func(_ context.Context, method string) (string, error) { return method, nil }
}

// Combine returns a key of several keys. If one of them is empty, the call is not limited.
func Combine(keys ...Key) Key {
	return func(ctx context.Context, method string) (string, error) {
		parts := make([]string, len(keys))
		for i, k := range keys {
			part, err := k(ctx, method)
			if err != nil || part == "" {
				return "", err
			}
			parts[i] = part
		}
		return rules.Combine(parts...), nil
	}
}
