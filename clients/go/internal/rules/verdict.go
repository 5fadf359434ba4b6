package rules

import "strings"

// Verdict says what a caller has to do with a call that did not get a decision.
type Verdict string

// These are the verdicts.
const (
	// Unavailable means that the option on_unavailable decides.
	Unavailable Verdict = "unavailable"
	// Misconfigured means that on_unavailable decides, with an error in the log and a metric: a deleted policy or a
	// changed password must not become an outage.
	Misconfigured Verdict = "misconfigured"
	// Raise means that the error is a fault of the program. The caller returns or raises it, and
	// never allows the call.
	Raise Verdict = "raise"
	// WithoutID means that the server is too old for ID. The call is sent again without ID, as are all later calls.
	WithoutID Verdict = "without-id"
)

// Phase says at what time a reply has arrived.
type Phase string

// These are the phases. Start is the check of the configuration when a limiter connects first.
const (
	Start Phase = "start"
	Call  Phase = "call"
)

// away has the first words of the errors which mean that the server cannot decide now.
var away = map[string]bool{
	"LOADING": true, "READONLY": true, "MASTERDOWN": true, "OOM": true, "BUSY": true, "UNAVAILABLE": true,
	"MISCONF": true, "NOREPLICAS": true, "CLUSTERDOWN": true, "TRYAGAIN": true, "IDENDED": true,
}

// wrong has the first words of the errors about the configuration.
var wrong = map[string]bool{"NOPOLICY": true, "NOPERM": true, "NOAUTH": true, "WRONGPASS": true}

// Misconfigures reports whether code, the first word of an error reply, is about the configuration.
func Misconfigures(code string) bool { return wrong[code] }

// maxClients is the error of a server that accepts no more connections.
const maxClients = "ERR max number of clients reached"

// Judge returns the verdict on an error reply, which begins with its code and not with "-". hasID says that the
// call had ID. failure says that the reply counts as a failure for the breaker: only a server that decides nothing
// now is one.
func Judge(reply string, phase Phase, hasID bool) (v Verdict, failure bool) {
	code, _, _ := strings.Cut(reply, " ")
	switch {
	case reply == maxClients || away[code]:
		return Unavailable, code != "IDENDED"
	case wrong[code]:
		if phase == Start {
			return Raise, false
		}
		return Misconfigured, false
	case hasID && tooOld(reply):
		return WithoutID, false
	}
	return Raise, false
}

// tooOld reports whether reply is the syntax error of a server that does not know ID.
func tooOld(reply string) bool {
	rest, ok := strings.CutPrefix(reply, "ERR syntax error")
	return ok && (rest == "" || strings.HasPrefix(rest, " near 'ID'"))
}

// Fault is the reason why a call has no reply.
type Fault string

// These are the reasons why a call has no reply.
const (
	Timeout Fault = "timeout" // the deadline has passed
	Refused Fault = "refused" // the connection could not be made
	Broken  Fault = "broken"  // the connection ended during the call
)

// Retries reports whether a call is sent once more, on a new connection and within the same deadline, after a fault.
// A call without ID never is, because it may have been charged.
func Retries(f Fault, hasID bool) bool { return f == Broken && hasID }
