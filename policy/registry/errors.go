package registry

import (
	"errors"
	"fmt"

	"github.com/cellserver/cellserver/policy"
)

// ErrStale is the error of a [Store] that other servers change, too: it has records that the Registry has
// not observed yet. Nothing was changed. The next Refresh has the Registry observe them.
var ErrStale = errors.New("the policies were changed by another server meanwhile")

// ErrUnconfirmed is the error of a change that is in force on a [Store] with replicas, of which none has confirmed it
// in time: a failover may lose the change.
var ErrUnconfirmed = errors.New("no replica has confirmed the change of policies")

// IsRefusal reports whether err means that the name, the pattern, the key form, the comment, the factor or
// a class of an entry is invalid, or that there are too many entries. The text of such an error can be a reply to
// a client.
func IsRefusal(err error) bool {
	for _, is := range []error{
		policy.ErrName, policy.ErrPattern, policy.ErrNetwork, policy.ErrKey, policy.ErrComment, policy.ErrFactor,
		policy.ErrClass, policy.ErrClassDebt, policy.ErrNotify,
		policy.ErrTooManyPolicies, policy.ErrTooManyOverrides, policy.ErrTooManyOthers,
	} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// PatternError is the error of a policy whose keys are to be addresses, although Pattern, a pattern of it, is no
// network in the form of [policy.KeyForm.Pattern]. If there are several such patterns, it is the first of them.
type PatternError struct {
	Kind            policy.Kind
	Policy, Pattern string
}

// Error names the policy, the pattern and the kind of its entry.
func (e *PatternError) Error() string {
	return fmt.Sprintf("the %s '%s' of policy '%s' is for no address or network, as KEY IP needs it: delete it first", e.Kind, e.Pattern, e.Policy)
}

// Unwrap returns [policy.ErrNetwork], so that errors.Is finds it.
func (e *PatternError) Unwrap() error { return policy.ErrNetwork }
