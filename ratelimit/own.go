package ratelimit

import (
	"sync"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// findOwn completes l for a call with limits of its own, after the entries that apply to its key were found.
func (l *Lookup) findOwn() {
	if l.Own != nil && l.Applied.Override == nil {
		l.Limits = l.Own
	}
}

// ownOrNone returns the policy for a call under a policy that the server does not have. If the call has no limits of
// its own, it returns the error of [Service.NoPolicy].
func (s *Service) ownOrNone(l *Lookup) (*policy.Policy, error) {
	if l.Own == nil {
		return nil, s.NoPolicy()
	}
	if s.Unread != nil {
		if err := s.Unread(); err != nil {
			return nil, err
		}
	}
	return blank(), nil
}

// blank returns a policy without entries for keys, for calls with limits of their own.
var blank = sync.OnceValue(func() *policy.Policy {
	const name = "request"
	b := policy.NewBuilder(policy.Sizes{})
	if err := b.Set(&policy.Entry{Kind: policy.Main, Policy: name, Limits: policy.Unlimited(), Until: limit.MaxInstant}); err != nil {
		panic("ratelimit: NONE is not a policy")
	}
	return b.Table().Policy([]byte(name))
})
