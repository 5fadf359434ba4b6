package limiters

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// writeDecision writes the five integers of d to w. Times are rounded up to seconds, or to
// milliseconds if millis is true.
func writeDecision(w *resp.Writer, d *limit.Decision, millis bool) {
	if millis {
		w.FiveInts(d.Refused, d.Limit, d.Remaining, limit.MillisUp(d.RetryAfter), limit.MillisUp(d.ResetAfter))
		return
	}
	w.FiveInts(d.Refused, d.Limit, d.Remaining, limit.SecondsUp(d.RetryAfter), limit.SecondsUp(d.ResetAfter))
}

// decisionOf returns the decision on a as a whole, which for several clauses is their binding
// decision.
func decisionOf(a *decide.Ask) limit.Decision {
	if a.Family == decide.Several {
		return a.Binding()
	}
	return a.Decision
}

// writeUse writes d, the decision on a as a whole. If a has WithDetails set, it also writes the
// decision on each clause.
func writeUse(w *resp.Writer, a *decide.Ask, d *limit.Decision) {
	if !a.WithDetails {
		writeDecision(w, d, a.Millis)
		return
	}
	details := a.Details
	if a.Family != decide.Several {
		details = []limit.Decision{*d}
	}
	w.Array(2)
	writeDecision(w, d, a.Millis)
	w.Array(len(details))
	for i := range details {
		writeDecision(w, &details[i], a.Millis)
	}
}
