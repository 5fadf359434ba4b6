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

// writeDetails writes d, the decision on a whole call, and details, those on its clauses.
func writeDetails(w *resp.Writer, d *limit.Decision, details []limit.Decision, millis bool) {
	w.Array(2)
	writeDecision(w, d, millis)
	w.Array(len(details))
	for i := range details {
		writeDecision(w, &details[i], millis)
	}
}

// decisionOf returns the decision on a as a whole, which for several clauses is their binding
// decision.
func decisionOf(a *decide.Ask) limit.Decision {
	if a.Family == decide.Several {
		return a.Binding()
	}
	return a.Decision
}

// writeWaited replies to a call that could have waited: with d, the decision on a as a whole. If a
// has WithDetails set, it also writes the decision on each clause.
func writeWaited(w *resp.Writer, a *decide.Ask, d *limit.Decision) {
	switch {
	case !a.WithDetails:
		writeDecision(w, d, a.Millis)
	case a.Family == decide.Several:
		writeDetails(w, d, a.Details, a.Millis)
	default:
		writeDetails(w, d, []limit.Decision{*d}, a.Millis)
	}
}
