package ratelimit

import (
	"sync"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// readable returns an error if this server cannot read the policy of l. If calls under such a policy pass, l gets a
// policy without limits instead.
func (s *Service) readable(l *Lookup) error {
	if s.Unreadable == nil {
		return nil
	}
	pass, why := s.Unreadable(l.Policy, l.Key)
	switch {
	case why == nil:
		return nil
	case pass:
		l.Rules = passing()
		return nil
	}
	return decide.Unavailable("the policy cannot be read by this server: " + why.Error())
}

// passing returns a policy with the clause NONE, which passes all calls.
var passing = sync.OnceValue(func() *policy.Policy {
	const name = "unreadable"
	b := policy.NewBuilder(policy.Sizes{})
	if err := b.Set(&policy.Entry{Kind: policy.Main, Policy: name, Limits: policy.Unlimited(), Until: limit.MaxInstant}); err != nil {
		panic("ratelimit: NONE is not a policy")
	}
	return b.Table().Policy([]byte(name))
})
