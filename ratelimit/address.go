package ratelimit

import (
	"errors"
	"net/netip"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// These are the errors of calls under a policy whose keys are addresses. A client can cause them by its choice of the
// key, so the caller has to deny the call: otherwise such a key would evade the limit.
var (
	// ErrNoAddress says that the key of the call is neither an IP address nor a network.
	ErrNoAddress = errors.New("the key is no address")
	// ErrWide says that the key is a network that is wider than the networks for which the policy
	// keeps a state.
	ErrWide = errors.New("the network is too wide")
	// ErrTwice says that two parts of a call have the same policy and addresses of the same
	// network.
	ErrTwice = errors.New("the same policy and network are named twice")
)

// AppendStateOf appends the name of the state of key under the policy p at now to dst: key itself or, if the keys of p
// are addresses, the network of key. The errors are [ErrNoAddress] and [ErrWide]; then dst is returned unchanged.
func AppendStateOf(dst []byte, p *policy.Policy, key []byte, now limit.Instant) ([]byte, error) {
	if !p.Main.Key.IP {
		return append(dst, key...), nil
	}
	var a policy.Applied
	network, err := networkOf(p, key, now, &a)
	if err != nil {
		return dst, err
	}
	return network.AppendTo(dst), nil
}

// networkOf returns the network whose state key uses under p, a policy whose keys are addresses, and sets a to the
// entries that apply to key at now. The errors are [ErrNoAddress] and [ErrWide].
func networkOf(p *policy.Policy, key []byte, now limit.Instant, a *policy.Applied) (netip.Prefix, error) {
	address, ok := policy.ParseAddress(key)
	if !ok {
		return netip.Prefix{}, ErrNoAddress
	}
	p.FindNetwork(address, now, a)
	network, ok := p.Main.Key.Network(address, a)
	if !ok {
		return netip.Prefix{}, ErrWide
	}
	return network, nil
}

// FindApplied sets a to the entries of p that apply to key at now. The errors are [ErrNoAddress] and [ErrWide].
func FindApplied(p *policy.Policy, key []byte, now limit.Instant, a *policy.Applied) error {
	if p.Main.Key.IP {
		_, err := networkOf(p, key, now, a)
		return err
	}
	p.Find(key, now, a)
	return nil
}

// findApplied sets l.Applied and, if the keys of the policy are addresses, l.Network. The entries are looked up by the
// address of the call, not by its network. The errors are [ErrNoAddress] and [ErrWide].
func (d *Decider) findApplied(l *Lookup) error {
	if !l.Rules.Main.Key.IP {
		l.Network = nil
		l.Rules.Find(l.Key, l.Now, &l.Applied)
		return nil
	}
	network, err := networkOf(l.Rules, l.Key, l.Now, &l.Applied)
	if err != nil {
		return err
	}
	l.Network, l.StateKey = d.keys.addNetwork(network, l.Volatile), nil // the front has computed StateKey from the address
	return nil
}
