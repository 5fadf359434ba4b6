package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Diagnose describes the server in one sentence: it returns the verdict of the first incident that
// applies, or [Healthy] if none does. The result depends only on f.
func Diagnose(f *Facts) Verdict {
	for _, incident := range [...]func(*Facts) (Verdict, bool){
		clockIsManual, stateIsLost, primaryRefused, storeIsAway, memoryIsFull, scriptRuns, replicasLack, primaryIsAway, lockedOut, callsFail,
		limitChanged, oneCaller, manyCallers, checkFails, nobodyCalls,
	} {
		if v, is := incident(f); is {
			return v
		}
	}
	return Verdict{
		Kind: Healthy, Title: "The limiter works.",
		Text: percent(f.Now.DeniedRatio) + " of the calls are denied" + f.asUsual() + ". " + f.passing(),
	}
}

// passing returns a sentence that says that all checks pass, or which ones do not. Diagnose uses it
// only if no check has failed for as long as failsFor.
func (f *Facts) passing() string {
	var names []string
	for _, c := range f.Checks {
		if !c.OK {
			names = append(names, "“"+c.Name+"”")
		}
	}
	switch len(names) {
	case 0:
		return "All checks pass."
	case 1:
		return "The check " + names[0] + " has failed for less than a minute; all others pass."
	}
	return "These checks have failed for less than a minute: " + strings.Join(names, ", ") + "."
}

func (f *Facts) asUsual() string {
	if f.Now.UsualRatio < 0 {
		return ""
	}
	return ", usually " + percent(f.Now.UsualRatio)
}

// clockIsManual is the first incident: a server for tests that has real clients limits them by a clock that stands still.
func clockIsManual(f *Facts) (Verdict, bool) {
	return Verdict{
		Kind: Failing, Title: "The clock is manual: this server is for tests only.",
		Text: "Time passes only when a client calls DEBUG CLOCK ADD, so that a key that is denied stays denied. Without --clock manual the server has a clock of its own.",
	}, f.ManualClock
}

func stateIsLost(f *Facts) (Verdict, bool) {
	if f.Fault == "" {
		return Verdict{}, false
	}
	return Verdict{
		Kind: State, Sick: true, Since: f.FaultSince,
		Title: "Sick: the state cannot be kept.",
		Text:  "Since " + f.clock(f.FaultSince) + " commands that change something are refused with -MISCONF: " + f.Fault + ".",
	}, true
}

// brief is the time for which another process may be unreachable before that is an incident. So a
// link that is re-established within this time is no incident.
const brief = 3 * time.Second

// since returns the time at which the check with the ID check began to fail; 0 unless it has failed
// for at least brief.
func (f *Facts) since(check string) int64 {
	if at := f.Failing[check]; at != 0 && f.At-at >= brief.Milliseconds() {
		return at
	}
	return 0
}

func primaryRefused(f *Facts) (Verdict, bool) {
	since := f.Failing[CheckRole]
	if !f.PrimaryRefused || since == 0 {
		return Verdict{}, false
	}
	return Verdict{
		Kind: Refused, Sick: true, Since: since, Title: "Sick: the primary has another data set and is refused.",
		Text: "Since " + f.clock(since) + " this replica keeps its own keys and follows " + Key(f.Primary).shown() + " no more, which came back empty or is another server. " +
			"REPLICAOF NO ONE makes this one the primary, and CONFIG SET repl-refuse-empty no gives its keys up.",
	}, true
}

func storeIsAway(f *Facts) (Verdict, bool) {
	since := f.since(CheckStore)
	if !f.HasStore || since == 0 {
		return Verdict{}, false
	}
	v := Verdict{
		Kind: NoStore, Sick: true, Since: since, Title: "Sick: the store does not answer.",
		Text: "Since " + f.clock(since) + " fail-policy answers calls in its place: " + f.StoreFault + ".",
	}
	if f.Now.ErrorRatio > 0 {
		v.Text += " " + percent(f.Now.ErrorRatio) + " of the calls are answered with an error."
	}
	return v, true
}

func replicasLack(f *Facts) (Verdict, bool) {
	since := f.since(CheckReplicas)
	if since == 0 {
		return Verdict{}, false
	}
	return Verdict{
		Kind: Lacking, Sick: true, Since: since, Title: "Sick: too few replicas, so that changes are refused.",
		Text: fmt.Sprintf("Since %s calls that change something are refused with -NOREPLICAS: %s of %s replicas have acknowledged something in time (min-replicas-to-write).",
			f.clock(since), thousands(f.GoodReplicas), thousands(f.WantedReplicas)),
	}, true
}

func primaryIsAway(f *Facts) (Verdict, bool) {
	since := f.since(CheckLink)
	if !f.Replica || since == 0 {
		return Verdict{}, false
	}
	return Verdict{
		Kind: NoPrimary, Sick: true, Since: since, Title: "Sick: this is a replica, and its primary does not answer.",
		Text: "Since " + f.clock(since) + " it gets no changes from " + Key(f.Primary).shown() + ". Changes are refused here with -READONLY. " +
			"If the primary is gone, REPLICAOF NO ONE makes this server the primary.",
	}, true
}

// It is an incident if at least the fraction mostFail of the calls of limiters is answered with
// errors, and there are at least aFewCalls calls per second.
const (
	mostFail  = 0.5
	aFewCalls = 0.5
)

func callsFail(f *Facts) (Verdict, bool) {
	least := mostFail
	if f.Named.Kind == Errors {
		least *= stays
	}
	if f.Now.ErrorRatio < least || f.Now.CallsS < aFewCalls {
		return Verdict{}, false
	}
	v := Verdict{
		Kind: Errors, Sick: true, Title: "Sick: calls of limiters are answered with errors.",
		Text: percent(f.Now.ErrorRatio) + " of the calls are answered with an error",
	}
	if f.Code != "" {
		v.Text += ", most with -" + Key(f.Code).shown()
	}
	v.Text += ". INFO errorstats counts them."
	return v, true
}

// stays is the factor by which the bound of a verdict is multiplied while the verdict is shown. So
// the verdict is withdrawn only after the figure has fallen clearly below the bound.
const stays = 0.8

func memoryIsFull(f *Facts) (Verdict, bool) {
	if f.FullSince == 0 {
		return Verdict{}, false
	}
	v := Verdict{Kind: Memory, Sick: true, Since: f.FullSince, Title: "Sick: memory is full.", Text: "new keys"}
	if f.Lacking != "" {
		group := f.Lacking
		v.Group = &group
		v.Title = "Sick: memory is full. New keys of " + group.shown() + " are refused."
		v.Text = "new keys of " + group.shown()
	}
	v.Text = "Since " + f.clock(f.FullSince) + " " + v.Text + " are refused with -OOM. " + mebibytes(f.Now.Memory) + " of " + mebibytes(f.Now.MaxMemory) + " MiB are in use."
	return v, true
}

func scriptRuns(f *Facts) (Verdict, bool) {
	s := f.Script
	if s == nil || !s.Busy {
		return Verdict{}, false
	}
	since := f.At - s.Running.Milliseconds()
	who := fmt.Sprintf("client %d", s.Client)
	switch {
	case s.Client == 0:
		who = "the admin port"
	case s.Name != "":
		who += " (" + s.Name.shown() + ")"
	}
	what := "a transaction with a script"
	if s.SHA != "" {
		what = "script " + s.SHA[:min(8, len(s.SHA))]
	}
	return Verdict{
		Kind: Script, Sick: true, Since: since, Client: s.Client, Script: s.SHA,
		Title: fmt.Sprintf("Sick: %s of %s has been running for %d s.", what, who, int64(s.Running.Seconds())),
		Text:  "It has been running since " + f.clock(since) + ". All other calls are answered -BUSY. SCRIPT KILL ends it if it has written nothing.",
	}, true
}

// fewLogins is the minimum number of failed logins of a user that count as an incident.
const fewLogins = 10

func lockedOut(f *Facts) (Verdict, bool) {
	for _, l := range f.Logins {
		cause := explains(f.Changes, l.Last, string(l.User), "acl", "reload", "config")
		if !l.Known || l.Count < fewLogins || f.At-l.Last > 30e3 || cause == nil {
			continue
		}
		user := l.User
		n := "Clients"
		switch {
		case l.Clients == 1:
			n = "1 client"
		case l.Clients > 1:
			n = thousands(l.Clients) + " clients"
		}
		return Verdict{
			Kind: LockedOut, Sick: true, Since: cause.At, User: &user, Change: cause.ID, Mark: cause.Mark,
			Title: n + " of " + user.shown() + " cannot log in since " + cause.Mark + ".",
			Text: fmt.Sprintf("%s is the change %s at %s, by %s. Since %s %s logins as %s have failed.",
				cause.Mark, cause.Text, f.clock(cause.At), cause.By, f.clock(l.First), thousands(l.Count), user.shown()),
		}, true
	}
	return Verdict{}, false
}

const (
	// severalKeys is the minimum number of denied keys for a verdict about all clients. someMore and
	// manyMore are the minimum differences between the present and the usual ratio of denied calls:
	// for a group whose limit has changed, and for all calls.
	severalKeys = 10
	someMore    = 0.02
	manyMore    = 0.25
)

func limitChanged(f *Facts) (Verdict, bool) {
	for i := range f.Groups {
		g := &f.Groups[i]
		lower := g.Rate == 0 || g.WasRate == 0 || g.Rate < g.WasRate
		before := max(0, g.Before)
		if g.Changed == 0 || f.At-g.Changed > hour || !lower || g.KeysDenied < severalKeys || g.TopShare > 0.5 || g.DeniedRatio < before+someMore || g.DeniedRatio < 2*before {
			continue
		}
		name := g.Group.Group
		v := Verdict{
			Kind: Limit, Since: g.Changed, Group: &name, Share: f.shareOf(g),
			Title: fmt.Sprintf("The limiter works. All keys in %s: %s, was %s.", name.shown(), g.Limit, g.Was),
			Text:  fmt.Sprintf("Since %s the calls of %s ask for another limit. %s of them are denied, on about %s keys.", f.clock(g.Changed), name.shown(), percent(g.DeniedRatio), thousands(g.KeysDenied)),
		}
		if g.Before >= 0 {
			v.Text += " Before that " + percent(g.Before) + " were."
		}
		for _, c := range f.Changes {
			if c.Kind == "limit" && c.Group != nil && *c.Group == name {
				v.Change, v.Mark = c.ID, c.Mark
				break
			}
		}
		return v, true
	}
	return Verdict{}, false
}

// shareOf returns the fraction of all denials that belong to group g, from 0 to 1; 0 if nothing is
// denied.
func (f *Facts) shareOf(g *GroupFacts) float64 {
	all := f.Now.DeniedRatio * f.Now.CallsS
	if all <= 0 {
		return 0
	}
	return rounded(min(1, g.DeniedRatio*g.CallsS/all))
}

const (
	// mostOfIt is the minimum fraction of all denials on one key for that key to be the incident.
	mostOfIt = 0.6
	// farOver is the minimum ratio between the rate of calls on the key and the limit of the key.
	farOver = 5
	// atLeast is the minimum number of denials of the key per second. lastsFor is the minimum time
	// since its first denial.
	atLeast  = 2.0
	lastsFor = 8 * time.Second
)

func oneCaller(f *Facts) (Verdict, bool) {
	if len(f.Keys) == 0 {
		return Verdict{}, false
	}
	k := &f.Keys[0]
	_, rate := LimitWords(k.Command, string(k.Args))
	if rate == 0 {
		rate = max(0, k.CallsS-k.DeniedS)
	}
	part := 1.0
	if n := f.Named; n.Kind == OneCaller && n.Key != nil && *n.Key == k.Key {
		part = stays
	}
	if k.Share < part*mostOfIt || k.DeniedS < part*atLeast || k.DeniedS+rate < part*farOver*rate || f.At-k.Since < lastsFor.Milliseconds() {
		return Verdict{}, false
	}
	key, group := k.Key, k.Group
	v := Verdict{
		Kind: OneCaller, Since: k.Since, Key: &key, DB: k.DB, Group: &group, Share: k.Share,
		Title: "The limiter works. One caller is over its limit.",
		Text:  fmt.Sprintf("Since %s %s of all denials are one key, %s", f.clock(k.Since), percent(k.Share), key.shown()),
	}
	if k.Limit != "" {
		v.Text += ", whose limit is " + k.Limit
	}
	v.Text += "."
	if len(k.Clients) > 0 {
		v.Client = k.Clients[len(k.Clients)-1].ID
	}
	all := f.Now.CallsS * f.Now.DeniedRatio
	calls, denied := f.Now.CallsS-max(k.CallsS, all*k.Share), all*(1-k.Share)
	if calls >= 1 {
		v.Text += " Of all other calls " + percent(min(1, max(0, denied/calls))) + " are denied."
	}
	return v, true
}

// nearlyAll is the fraction of calls that must be denied for an incident while the usual fraction
// is not known.
const nearlyAll = 0.9

// manyCallers is the incident that many more calls are denied than usual, without a change or a
// single key that explains it. While it is not known what is usual, it is the incident that nearly
// every call is denied.
func manyCallers(f *Facts) (Verdict, bool) {
	usual, part := f.Now.UsualRatio, 1.0
	if f.Named.Kind == Denials {
		part = stays
	}
	switch {
	case usual < 0 && f.Now.DeniedRatio >= part*nearlyAll && f.Now.CallsS >= aFewCalls:
		return Verdict{
			Kind: Denials, Title: "The limiter works. Nearly every call is denied.",
			Text: percent(f.Now.DeniedRatio) + " of the calls are denied. The server has not run for long enough to know what is usual.",
		}, true
	case usual < 0 || f.Now.CallsS < part*10 || f.Now.DeniedRatio < usual+part*manyMore || f.Now.DeniedRatio < part*3*usual:
		return Verdict{}, false
	}
	v := Verdict{
		Kind: Denials, Title: "The limiter works. More is denied than usual.",
		Text: percent(f.Now.DeniedRatio) + " of the calls are denied, usually " + percent(usual),
	}
	if f.Now.KeysDenied >= severalKeys {
		v.Title = "The limiter works. More is denied than usual, of many keys."
		v.Text += ", on about " + thousands(f.Now.KeysDenied) + " keys"
	}
	if v.Text += "."; !slices.ContainsFunc(f.Changes, func(c Change) bool { return c.Kind == "limit" && f.At-c.At < hour }) {
		v.Text += " No limit has changed in the last hour."
	}
	for i := range f.Groups {
		if g := &f.Groups[i]; f.shareOf(g) > v.Share {
			name := g.Group.Group
			v.Share, v.Group = f.shareOf(g), &name
		}
	}
	return v, true
}

// failsFor is the minimum time for which a check must have failed before it becomes the verdict.
const failsFor = time.Minute

func checkFails(f *Facts) (Verdict, bool) {
	var fails []string
	oldest := int64(0)
	for _, c := range f.Checks {
		since := f.Failing[c.ID]
		if c.OK || since == 0 || f.At-since < failsFor.Milliseconds() {
			continue
		}
		fails = append(fails, "“"+c.Name+"” fails: "+c.Text+", "+expected(c.Bound)+".")
		if oldest == 0 || since < oldest {
			oldest = since
		}
	}
	v := Verdict{Kind: Failing, Since: oldest, Title: "The limiter works, but a check fails."}
	switch len(fails) {
	case 0:
		return Verdict{}, false
	case 1:
	default:
		v.Title = fmt.Sprintf("The limiter works, but %d checks fail.", len(fails))
	}
	v.Text = "Since " + f.clock(oldest) + " " + strings.Join(fails, " ")
	return v, true
}

// expected returns a clause that says what value a check expects, such as "at most 80 % is
// expected".
func expected(bound string) string {
	if rest, is := strings.CutPrefix(bound, "≤ "); is {
		return "at most " + rest + " is expected"
	}
	return bound + " is expected"
}

func nobodyCalls(f *Facts) (Verdict, bool) {
	if !f.Idle {
		return Verdict{}, false
	}
	return Verdict{Kind: Idle, Title: "No client calls a limiter.", Text: "The server is up and answers. No limiter has been called for a minute."}, true
}
