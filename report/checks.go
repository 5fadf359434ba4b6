package report

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// These are the bounds of the checks.
const (
	mostP99      = time.Millisecond
	mostLoops    = 0.8
	mostErrors   = 1.0 // the maximum number of error replies per second
	mostMemory   = 0.8
	mostSyncAge  = 2 * time.Second
	mostStep     = time.Second
	mostScript   = 100 * time.Millisecond
	mostFailures = 10 // the maximum number of failed logins in five minutes
	// fewAnswers is the minimum number of replies within ten seconds for their latency to be
	// judged. With fewer, the check passes.
	fewAnswers = 200
)

// checks returns the results of all checks for the newest sample. The caller holds mu.
func (r *Recorder) checks() []Check {
	f := &r.last.Figures
	recent, over := r.recent(window)
	long, _ := r.recent(longWindow)
	answers, _, p99 := r.latency()
	all := append([]Check{
		checkP99(answers, p99),
		{
			ID: CheckLoops, Name: "Event loops have room", Value: rounded(f.Loops), Limit: mostLoops, OK: f.Loops <= mostLoops,
			Text: "busiest " + percent(f.Loops), Bound: "≤ 80 %",
		},
		checkErrors(float64(recent.errors) / over),
		{
			ID: CheckRefused, Name: "No client refused or cut off", Value: float64(long.lost), OK: long.lost == 0,
			Text: thousands(long.lost) + " in 5 min", Bound: "0",
		},
		checkMemory(f),
		checkState(f),
		checkClock(f),
		checkScripts(f, time.Duration(long.script)*time.Microsecond),
		{
			ID: CheckLogins, Name: "Few failed logins", Value: float64(long.logins), Limit: mostFailures, OK: long.logins <= mostFailures,
			Text: thousands(long.logins) + " in 5 min", Bound: "≤ 10",
		},
	}, dependencyChecks(&f.Dependencies)...)
	if f.HasRules {
		all = append(all, checkRules(f))
	}
	return all
}

// mostAckAge is the maximum time since the last acknowledgement of a replica. Replicas acknowledge
// once a second.
const mostAckAge = 5 * time.Second

// dependencyChecks returns the check of the role, and those checks of the store, the primary and the
// replicas that apply to the server.
func dependencyChecks(e *Dependencies) []Check {
	role := Check{ID: CheckRole, Name: "Role is known", OK: !e.PrimaryRefused, Text: "primary", Bound: "primary or replica"}
	switch {
	case e.HasStore:
		role.Text = "limits are in a store"
	case e.PrimaryRefused:
		role.Text, role.Bound = "replica that refuses its primary", "the same data set"
	case e.Replica:
		role.Text = "replica of " + Key(e.Primary).shown()
	}
	all := []Check{role}
	if e.HasStore {
		c := Check{ID: CheckStore, Name: "Store answers", OK: e.StoreFault == "", Text: "every node does", Bound: "every node"}
		if !c.OK {
			c.Value, c.Text = 1, e.StoreFault
		}
		all = append(append(all, c, checkPolicies(e)), serverChecks(e.Servers)...)
	}
	if e.Replica {
		c := Check{ID: CheckLink, Name: "Primary answers", OK: e.LinkUp, Text: "link is up, " + lasting(e.Lag) + " behind", Bound: "link up"}
		if !c.OK {
			c.Value, c.Text = 1, "no link to "+Key(e.Primary).shown()
		}
		all = append(all, c)
	}
	if e.WantedReplicas > 0 {
		all = append(all, Check{
			ID: CheckReplicas, Name: "Enough replicas", Value: float64(max(0, e.WantedReplicas-e.GoodReplicas)), OK: e.GoodReplicas >= e.WantedReplicas,
			Text: thousands(e.GoodReplicas) + " of " + thousands(e.WantedReplicas), Bound: "min-replicas-to-write",
		})
	}
	if e.Replicas > 0 {
		all = append(all, Check{
			ID: CheckAcks, Name: "Replicas acknowledge", Value: e.AckAge.Seconds(), Limit: mostAckAge.Seconds(), OK: e.AckAge <= mostAckAge,
			Text: "the latest " + lasting(e.AckAge) + " ago", Bound: "≤ 5 s",
		})
	}
	return all
}

// mostPoliciesAge is the maximum time since the store has confirmed that the server has its policies. Servers ask once a
// second.
const mostPoliciesAge = 10 * time.Second

func checkPolicies(e *Dependencies) Check {
	c := Check{
		ID: CheckPolicies, Name: "Policies are current", Value: e.PoliciesAge.Seconds(), Limit: mostPoliciesAge.Seconds(),
		OK: e.PoliciesRead && e.PoliciesAge <= mostPoliciesAge, Text: "the store confirmed them " + lasting(e.PoliciesAge) + " ago", Bound: "≤ 10 s",
	}
	if !e.PoliciesRead {
		c.Text = "not read yet"
	}
	return c
}

func checkP99(answers int64, p99 time.Duration) Check {
	ms := float64(p99) / float64(time.Millisecond)
	c := Check{
		ID: CheckP99, Name: "Answers in time", Value: ms, Limit: float64(mostP99) / float64(time.Millisecond), OK: p99 <= mostP99 || answers < fewAnswers,
		Text: "p99 " + lasting(p99), Bound: "≤ 1 ms",
	}
	if answers < fewAnswers {
		c.Value, c.Text = 0, thousands(answers)+" answers, too few to tell"
	}
	return c
}

func checkErrors(perSecond float64) Check {
	return Check{
		ID: CheckErrors, Name: "Few errors answered", Value: perSecond, Limit: mostErrors, OK: perSecond <= mostErrors,
		Text: strconv.FormatFloat(math.Round(perSecond*10)/10, 'f', -1, 64) + "/s", Bound: "≤ 1/s",
	}
}

func checkMemory(f *Figures) Check {
	c := Check{ID: CheckMemory, Name: "Memory has room", Limit: mostMemory, OK: true, Text: mebibytes(f.Memory) + " MiB", Bound: "no maxmemory"}
	if f.MaxMemory > 0 {
		c.Value = rounded(float64(f.Memory) / float64(f.MaxMemory))
		c.OK = c.Value <= mostMemory
		c.Text = mebibytes(f.Memory) + " of " + mebibytes(f.MaxMemory) + " MiB"
		c.Bound = "≤ 80 %"
	}
	return c
}

func checkState(f *Figures) Check {
	c := Check{ID: CheckState, Name: "State is kept", Limit: mostSyncAge.Seconds(), OK: true, Bound: "≤ 2 s"}
	switch {
	case f.Fault != "":
		c.OK, c.Text = false, "not kept: "+f.Fault
	case !f.Keeps:
		c.Text, c.Bound = "no log is written", "appendonly no"
	default:
		c.Value = f.SyncAge.Seconds()
		c.OK = f.SyncAge <= mostSyncAge
		c.Text = "synced " + lasting(f.SyncAge) + " ago"
	}
	return c
}

func checkClock(f *Figures) Check {
	step := f.ClockStep
	c := Check{
		ID: CheckClock, Name: "Clock is steady", Value: step.Seconds(), Limit: mostStep.Seconds(), OK: step.Abs() <= mostStep,
		Text: fmt.Sprintf("step %d s", int64(step.Seconds())), Bound: "≤ 1 s",
	}
	if f.ManualClock {
		c.OK, c.Text, c.Bound = false, "moves only by DEBUG CLOCK ADD", "clock system"
	}
	return c
}

func checkRules(f *Figures) Check {
	c := Check{ID: CheckRules, Name: "Rules are loaded", OK: f.RulesFault == "", Text: thousands(f.Rules) + " in force", Bound: "no fault"}
	if !c.OK {
		c.Value, c.Text = 1, f.RulesFault
	}
	return c
}

func checkScripts(f *Figures, longest time.Duration) Check {
	if f.Script != nil {
		longest = max(longest, f.Script.Running)
	}
	ms := float64(longest) / float64(time.Millisecond)
	return Check{
		ID: CheckScripts, Name: "No script in the way", Value: ms, Limit: float64(mostScript / time.Millisecond), OK: longest <= mostScript,
		Text: "longest " + lasting(longest), Bound: "≤ 100 ms",
	}
}
