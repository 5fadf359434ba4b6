package report

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/stats"
)

// Reporter creates reports from the history of a [Recorder] and the information of a [Source].
type Reporter struct {
	rec *Recorder
	src Source
	// named is the verdict of the last Overview.
	named atomic.Pointer[Verdict]
}

// New returns a Reporter with the history of rec and the information of src.
func New(rec *Recorder, src Source) *Reporter { return &Reporter{rec: rec, src: src} }

const keysAtMost = 1000

// hidden is shown in place of a key that the user may not read.
const hidden Key = "(a key that you may not read)"

func readable(u *acl.User, key string) bool {
	return u != nil && slices.ContainsFunc(u.Rules().Selectors(), func(s *acl.Selector) bool { return s.Key([]byte(key), acl.Read) })
}

// Overview returns the summary of the server's state, with what u may see. It remembers the
// verdict, which the next call compares with new figures.
func (r *Reporter) Overview(u *acl.User) Overview {
	f, at := r.facts(u)
	if named := r.named.Load(); named != nil {
		f.Named = *named
	}
	o := Overview{At: at, Server: r.src.Identity(), You: r.you(u), Verdict: Diagnose(&f), Checks: f.Checks, Now: f.Now, Servers: f.Servers}
	named := o.Verdict
	r.named.Store(&named)
	if v := &o.Verdict; v.Key != nil && *v.Key == hidden {
		v.Key, v.DB, v.Client = nil, 0, 0
	}
	o.Actions = r.offered(u, 0, actionsOn(&o.Verdict))
	return o
}

// you describes u, the user of the request, and the actions that u may take. A nil u has no name
// and may take none.
func (r *Reporter) you(u *acl.User) You {
	you := You{Actions: r.src.Actions(), May: []string{}}
	if u == nil {
		return you
	}
	you.User = u.Name
	for _, name := range Offered() {
		if r.src.May(u, name) {
			you.May = append(you.May, name)
		}
	}
	return you
}

// facts collects the facts for a verdict, with what u may see. at is the time of the facts, in Unix
// milliseconds.
func (r *Reporter) facts(u *acl.User) (f Facts, at int64) {
	keys, _ := r.denied(u, "", keysAtMost, true)
	top := make(map[string]float64)
	sums := make(map[string]float64)
	for _, k := range keys {
		sums[string(k.Group)] += k.DeniedS
		top[string(k.Group)] = max(top[string(k.Group)], k.DeniedS)
	}
	for g, most := range top {
		if sums[g] > 0 {
			top[g] = most / sums[g]
		}
	}
	f = r.rec.facts(func(g string) float64 { return top[g] })
	f.Keys = keys[:min(len(keys), 10)]
	f.Changes = r.Changes(u, 0)
	return f, f.At
}

// Keys returns up to n keys that u may read: the most called ones if byCalls is true, and otherwise
// the most denied ones. It returns only those in the group called group, unless group is "".
func (r *Reporter) Keys(u *acl.User, byCalls bool, n int, group string) []DeniedKey {
	if !byCalls {
		keys, _ := r.denied(u, group, n, false)
		return keys
	}
	called, denied := r.src.Called(), index(r.src.Denied())
	keys := make([]DeniedKey, 0, min(n, len(called.Keys)))
	for i := range called.Keys {
		k := &called.Keys[i]
		if name := r.src.GroupOf(k.Key); len(keys) < n && readable(u, k.Key) && (group == "" || group == name) {
			keys = append(keys, r.keyLine(k, denied[keyName{k.DB, k.Key}], k, called.PerSecond, name))
		}
	}
	return keys
}

// denied returns up to n of the most denied keys, in the group called group or, if group is "", in
// all. If u may not read a key, denied hides its name and clients if hide is true, and omits the
// key otherwise. perSecond is the number of all denials per second.
func (r *Reporter) denied(u *acl.User, group string, n int, hide bool) (keys []DeniedKey, perSecond float64) {
	denied, called := r.src.Denied(), index(r.src.Called())
	keys = make([]DeniedKey, 0, min(n, len(denied.Keys)))
	for i := range denied.Keys {
		k := &denied.Keys[i]
		may := readable(u, k.Key)
		if name := r.src.GroupOf(k.Key); len(keys) < n && (may || hide) && (group == "" || group == name) {
			line := r.keyLine(k, k, called[keyName{k.DB, k.Key}], denied.PerSecond, name)
			if !may {
				line.Key, line.Clients = hidden, []Caller{}
			}
			keys = append(keys, line)
		}
	}
	return keys, denied.PerSecond
}

type keyName struct {
	db  int
	key string
}

func index(keys stats.SeenKeys) map[keyName]*stats.SeenKey {
	all := make(map[keyName]*stats.SeenKey, len(keys.Keys))
	for i := range keys.Keys {
		k := &keys.Keys[i]
		all[keyName{k.DB, k.Key}] = k
	}
	return all
}

// keyLine describes the key of k. denied and called are the statistics of the key's denials and of
// its calls, nil if there are none. all is the number of calls or denials per second of which
// k.PerSecond is a part; if it is 0, Share is 0. group is the group of the key.
func (r *Reporter) keyLine(k, denied, called *stats.SeenKey, all float64, group string) DeniedKey {
	line := DeniedKey{
		DB: k.DB, Key: Key(k.Key), Group: Key(group), Command: k.Command, Args: Key(k.Args), RetryMs: k.RetryAfter.Milliseconds(),
		Since: r.rec.Civil(k.First), Clients: r.callers(k.Clients),
	}
	line.Limit, _ = LimitWords(k.Command, k.Args)
	if denied != nil {
		line.DeniedS, line.RetryMs = denied.PerSecond, denied.RetryAfter.Milliseconds()
	}
	if line.CallsS = line.DeniedS; called != nil {
		line.CallsS = max(line.CallsS, called.PerSecond)
	}
	if all > 0 {
		line.Share = rounded(min(1, k.PerSecond/all))
	}
	return line
}

// callers returns the clients with these IDs that are still connected, without duplicates, at most
// [stats.MaxSeenClients].
func (r *Reporter) callers(ids []int64) []Caller {
	callers := make([]Caller, 0, len(ids))
	for i, id := range ids {
		if slices.Contains(ids[:i], id) || len(callers) == stats.MaxSeenClients {
			continue
		}
		if c, ok := r.src.Caller(id); ok {
			callers = append(callers, c)
		}
	}
	return callers
}

// History returns the history of the last seconds, as many as seconds says, with the changes that u
// may see: see [Recorder.History].
func (r *Reporter) History(u *acl.User, seconds int64) History {
	return r.rec.History(seconds, r.Changes(u, 0))
}

// Groups returns the groups of keys, the most called first.
func (r *Reporter) Groups() []Group {
	top, sums := make(map[string]float64), make(map[string]float64)
	for _, k := range r.src.Denied().Keys {
		g := r.src.GroupOf(k.Key)
		sums[g] += k.PerSecond
		top[g] = max(top[g], k.PerSecond)
	}
	return r.rec.Groups(func(g string) float64 {
		if sums[g] == 0 {
			return 0
		}
		return rounded(top[g] / sums[g])
	})
}

// Changes returns the changes with an ID above since, the newest first. It adds the arguments about
// a key to their texts if u may read the key.
func (r *Reporter) Changes(u *acl.User, since int64) []Change {
	all := r.src.Changes(since)
	for i := range all {
		if c := &all[i]; c.Key != "" && readable(u, c.Key) {
			c.Text += " " + c.Words
		}
	}
	return r.rec.Changes(all)
}

// client returns the command line of redis-cli with which u reaches a database.
func (r *Reporter) client(u *acl.User, db int) string {
	client := r.src.Identity().Client
	if u != nil && u.Name != acl.DefaultUser && !u.Rules().NoPass {
		client = strings.TrimSuffix(client, " --askpass") + " --user " + shellWord(u.Name) + " --askpass"
	}
	if db != 0 {
		client += " -n " + strconv.Itoa(db)
	}
	return client
}

// offered returns the elements of all that u may run. It adds the client program to their lines.
func (r *Reporter) offered(u *acl.User, db int, all []Action) []Action {
	client, may := r.client(u, db), []Action{}
	for _, a := range all {
		a.Line = client + " " + a.Line
		if u != nil && (r.src.May(u, commandName(a.Args, 1)) || r.src.May(u, commandName(a.Args, 2))) {
			may = append(may, a)
		}
	}
	return may
}
