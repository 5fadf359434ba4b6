package headers

// Problem is the body of a response of the type application/problem+json (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail explains the problem; if it is "", the body has no such field.
	Detail string `json:"detail,omitempty"`
	// Violated has the names of the policies that deny the call, as in the header fields; if it is
	// nil, the body has no such field.
	Violated []string `json:"violated-policies,omitempty"`
}

// ProblemType is the media type of a [Problem].
const ProblemType = "application/problem+json"

// These are the types and titles of the problems of a denied call. The draft asks IANA to register the types.
const (
	quotaExceeded      = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaExceededTitle = "Request cannot be satisfied as assigned quota has been exceeded"
	abnormalUsage      = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
	abnormalUsageTitle = "Request not satisfied due to detection of abnormal request pattern"
)

// ProblemOf returns the problem of a, which is denied, for a response with the given status. For a block the problem is
// abnormal-usage-detected, with the name of the policy. Otherwise it is quota-exceeded, with the names of the clauses
// that deny the call.
func ProblemOf(a *Answer, status int) Problem {
	if a.Blocked {
		return Problem{Type: abnormalUsage, Title: abnormalUsageTitle, Status: status, Violated: []string{a.Policy}}
	}
	p := Problem{Type: quotaExceeded, Title: quotaExceededTitle, Status: status}
	for i := range a.Clauses {
		if a.Clauses[i].Denies {
			p.Violated = append(p.Violated, string(appendName(nil, a.Policy, i)))
		}
	}
	return p
}
