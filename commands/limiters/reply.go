package limiters

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// writeDecision writes the five integers with times rounded up.
func writeDecision(w *resp.Writer, d *limit.Decision, millis bool) {
	if millis {
		w.FiveInts(d.Refused, d.Limit, d.Remaining, limit.MillisUp(d.RetryAfter), limit.MillisUp(d.ResetAfter))
		return
	}
	w.FiveInts(d.Refused, d.Limit, d.Remaining, limit.SecondsUp(d.RetryAfter), limit.SecondsUp(d.ResetAfter))
}

// writeUse replies the decision d of a, with those of its clauses if that was asked for.
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

// binding is the answer as a whole: the limit that leaves least, among the refused
// ones if there are any, with the longest times.
func binding(a *decide.Ask) limit.Decision {
	d := limit.Decision{RetryAfter: limit.NoRetry}
	chosen, never := false, false
	for i := range a.Details {
		detail := &a.Details[i]
		d.ResetAfter = max(d.ResetAfter, detail.ResetAfter)
		if a.Refused && detail.Refused == 0 {
			continue
		}
		if !chosen || detail.Remaining < d.Remaining {
			d.Limit, d.Remaining, chosen = detail.Limit, detail.Remaining, true
		}
		never = never || detail.RetryAfter == limit.NoRetry
		d.RetryAfter = max(d.RetryAfter, detail.RetryAfter)
	}
	if a.Refused {
		d.Refused = 1
		if never {
			d.RetryAfter = limit.NoRetry
		}
	} else {
		d.RetryAfter = limit.NoRetry
	}
	return d
}
