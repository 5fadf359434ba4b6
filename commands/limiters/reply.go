package limiters

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/ratelimit"
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

// writeAnswer writes the decision on a call as a whole to w. If details is true, an array of the
// decisions on the clauses follows; a call without clauses counts as one clause.
func writeAnswer(w *resp.Writer, answer *ratelimit.Answer, details, millis bool) {
	if !details {
		writeDecision(w, answer.Decision, millis)
		return
	}
	w.Array(2)
	writeDecision(w, answer.Decision, millis)
	if answer.Details == nil {
		w.Array(1)
		writeDecision(w, answer.Decision, millis)
		return
	}
	w.Array(len(answer.Details))
	for i := range answer.Details {
		writeDecision(w, &answer.Details[i], millis)
	}
}

// writeWaited writes d, the decision on a as a whole, as the reply to a call that could have
// waited.
func writeWaited(w *resp.Writer, a *decide.Ask, d *limit.Decision) {
	answer := ratelimit.Answer{Decision: d}
	if a.Family == decide.Several {
		answer.Details = a.Details
	}
	writeAnswer(w, &answer, a.WithDetails, a.Millis)
}
