package registry

import (
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// Text returns the arguments of the command that sets e, for display. If e is nil, it returns "".
// civil converts an instant of the store into the civil instant.
func Text(e *policy.Entry, civil func(limit.Instant) limit.Instant) string {
	if e == nil {
		return ""
	}
	words := []string{strings.ToUpper(e.Kind.String())}
	if e.Pattern != "" {
		words = append(words, strconv.Quote(e.Pattern))
	}
	if e.Kind == policy.Boost {
		words = append(words, string(policy.AppendFactor(nil, e.Factor)))
	}
	for _, s := range policy.Switches {
		if *s.Of(&e.Flags) {
			words = append(words, s.Word)
		}
	}
	if e.Key.IP {
		words = append(words, "KEY", e.Key.String())
	}
	if e.Notify > 0 {
		words = append(words, "NOTIFY", policy.ShareText(e.Notify))
	}
	for _, c := range e.ClassList() {
		words = append(words, "CLASS", c.Name, "KEEP", policy.ShareText(c.Keep))
	}
	if e.Limits != nil {
		if e.Limits.Millis {
			words = append(words, "MS")
		}
		words = append(words, "LIMITS", strings.Join(e.Limits.Text, " "))
	}
	if e.Until != limit.MaxInstant {
		words = append(words, "until", Time(civil(e.Until)))
	}
	if e.Comment != "" {
		words = append(words, strconv.Quote(e.Comment))
	}
	return strings.Join(words, " ")
}

// Time formats the civil instant at as RFC 3339 in UTC, with fractions of a second if there are
// any.
func Time(at limit.Instant) string {
	return time.Unix(0, int64(at)).UTC().Format(time.RFC3339Nano)
}
