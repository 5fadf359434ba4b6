package rules

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// ErrTrust says that the options of a key for addresses are wrong.
var ErrTrust = errors.New("wrong options for the address of a client")

// Trust says which addresses in X-Forwarded-For are believed.
type Trust func(*Addresses) error

// NewAddresses returns how the address of a client is found with the given options. The error wraps [ErrTrust].
func NewAddresses(options ...Trust) (Addresses, error) {
	a := Addresses{V6Prefix: MaxV6Prefix}
	var wrong error
	for _, o := range options {
		wrong = errors.Join(wrong, o(&a))
	}
	switch {
	case a.Hops > 0 && len(a.Networks) > 0:
		wrong = errors.Join(wrong, fmt.Errorf("%w: trusted hops and networks exclude each other", ErrTrust))
	case a.socket && a.Hops == 0:
		wrong = errors.Join(wrong, fmt.Errorf("%w: %w", ErrTrust, ErrPeer))
	}
	return a, wrong
}

// Hops is the option of a number of proxies, at least 1.
func Hops(n int) Trust {
	return func(a *Addresses) error {
		if n < 1 {
			return fmt.Errorf("%w: %d trusted hops", ErrTrust, n)
		}
		a.Hops = n
		return nil
	}
}

// Networks is the option of networks of proxies. An address is a network of its own.
func Networks(networks ...string) Trust {
	return func(a *Addresses) error {
		for _, text := range networks {
			n, err := network(text)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrTrust, err)
			}
			a.Networks = append(a.Networks, n)
		}
		return nil
	}
}

// network returns the network in text, or that of one address.
func network(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	a, err := netip.ParseAddr(text)
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), err
}

// V6 is the option of the bits of an IPv6 address that make one key, from 48 to 64.
func V6(bits int) Trust {
	return func(a *Addresses) error {
		if bits < MinV6Prefix || bits > MaxV6Prefix {
			return fmt.Errorf("%w: a prefix of %d bits", ErrTrust, bits)
		}
		a.V6Prefix = bits
		return nil
	}
}

// Listens is the option of the address on which requests come in. At a Unix socket no peer has an address, so that hops are needed.
func Listens(on net.Addr) Trust {
	return func(a *Addresses) error {
		switch on.(type) {
		case *net.TCPAddr, *net.UDPAddr:
		default:
			a.socket = true
		}
		return nil
	}
}
