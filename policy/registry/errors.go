package registry

import (
	"errors"

	"github.com/cellserver/cellserver/policy"
)

// IsRefusal reports whether an error says what of an entry is unsound, or that there are too many,
// so that its text is an answer.
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
