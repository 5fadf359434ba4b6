package registry

import (
	"errors"

	"github.com/cellserver/cellserver/policy"
)

// IsRefusal reports whether err means that the name, the pattern, the comment or the factor of an
// entry is invalid, or that there are too many entries. The text of such an error can be a reply to
// a client.
func IsRefusal(err error) bool {
	for _, is := range []error{
		policy.ErrName, policy.ErrPattern, policy.ErrComment, policy.ErrFactor,
		policy.ErrTooManyPolicies, policy.ErrTooManyOverrides, policy.ErrTooManyOthers,
	} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}
