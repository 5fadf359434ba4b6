package ratelimit

import (
	"errors"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// These are the errors of calls under a policy whose keys are addresses. A client can cause them by its key, so a
// caller has to deny the call.
var (
	// ErrNoAddress says that the key of the call is neither an IP address nor a network.
	ErrNoAddress = errors.New("the key is no address")
	// ErrWide says that the key is a network that is wider than those to which the policy gives a state.
	ErrWide = errors.New("the network is too wide")
	// ErrTwice says that two parts of a call have one policy and addresses of one network.
	ErrTwice = errors.New("the same policy and network are named twice")
)

// AppendStateOf appends what names the state of key under the policy p at now, in place of the key of a call: key
// itself, or the network of key if the keys of p are addresses. The errors are [ErrNoAddress] and [ErrWide]; then dst is
// returned as it was.
func AppendStateOf(dst []byte, p *policy.Policy, key []byte, now limit.Instant) ([]byte, error) {
	f := p.Main.Key
	if !f.IP {
		return append(dst, key...), nil
	}
	address, ok := policy.ParseAddress(key)
	if !ok {
		return dst, ErrNoAddress
	}
	var a policy.Applied
	p.FindNetwork(address, now, &a)
	network, ok := f.Network(address, &a)
	if !ok {
		return dst, ErrWide
	}
	return network.AppendTo(dst), nil
}

// findApplied sets l.Applied and, if the keys of the policy are addresses, l.Network. The entries that apply are
// those for the address as it came. The errors are [ErrNoAddress] and [ErrWide].
func (d *Decider) findApplied(l *Lookup) error {
	f := l.Rules.Main.Key
	if !f.IP {
		l.Network = nil
		l.Rules.Find(l.Key, l.Now, &l.Applied)
		return nil
	}
	address, ok := policy.ParseAddress(l.Key)
	if !ok {
		return ErrNoAddress
	}
	l.Rules.FindNetwork(address, l.Now, &l.Applied)
	network, ok := f.Network(address, &l.Applied)
	if !ok {
		return ErrWide
	}
	l.Network, l.StateKey = d.keys.addNetwork(network, l.Volatile), nil // the front does not know the network
	return nil
}
