package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/stats"
)

// Other is another live server of the store.
type Other struct {
	ID, Name string
	// Share is the latest share of the server; nil if there is none, or none that this release can
	// read.
	Share *Share
	// Age is the time since the server has made Share. Late says that Share is too old to be added
	// up.
	Age  time.Duration
	Late bool
}

// Fleet describes the servers of the store over which a report is the sum, and has their figures.
type Fleet struct {
	Servers int   `json:"servers"` // number of servers in the sum, including this one
	Missing int   `json:"missing"` // number of live servers whose figures are missing or cannot be read
	Late    int   `json:"late"`    // number of live servers whose latest figures are too old for the sum
	AgeMs   int64 `json:"age_ms"`  // age in milliseconds of the oldest figures in the sum
	// Error is the reason why the figures or the number of other servers are not known.
	Error string   `json:"error,omitempty"`
	Now   FleetNow `json:"now"`
}

// FleetNow has the figures of [Now] that can be added.
type FleetNow struct {
	CallsS       float64 `json:"calls_s"`
	DeniedRatio  float64 `json:"denied_ratio"`
	ErrorRatio   float64 `json:"error_ratio"`
	P99us        float64 `json:"p99_us"` // the percentile of the slowest server, in microseconds
	Clients      int64   `json:"clients"`
	KeysDenied   int64   `json:"keys_denied"` // the number on the server with the most denied keys, a lower bound for all servers
	Repeats      int64   `json:"repeats,omitempty"`
	Reservations []Count `json:"reservations,omitempty"`
}

// FleetKeys has the keys that are denied or called most on all servers.
type FleetKeys struct {
	Fleet Fleet       `json:"fleet"`
	Keys  []DeniedKey `json:"keys"`
}

// FleetGroups has the groups of keys on all servers.
type FleetGroups struct {
	Fleet  Fleet   `json:"fleet"`
	Groups []Group `json:"groups"`
}

// whole reports whether all live servers are in the sum.
func (f *Fleet) whole() bool { return f.Missing == 0 && f.Late == 0 && f.Error == "" }

// part is the share of a server in a sum.
type part struct {
	*Share
	id, name string // ID and name of the server; both are "" for this server
	age      time.Duration
}

// parts returns the shares that a report of all servers adds up, beginning with the share of this server. If wait is
// not set, it returns those that are known already.
func (r *Reporter) parts(wait bool) ([]part, Fleet) {
	own := r.share()
	others, err := r.src.Others(wait)
	all, f := sumOf(&own, others)
	if err != nil {
		f.Error = err.Error()
	}
	return all, f
}

// sumOf returns own and the shares of the others that count in a sum.
func sumOf(own *Share, others []Other) (all []part, f Fleet) {
	all = append(all, part{Share: own})
	for i := range others {
		switch o := &others[i]; {
		case o.Share == nil:
			f.Missing++
		case o.Late:
			f.Late++
		default:
			all = append(all, part{o.Share, o.ID, o.Name, o.Age})
			f.AgeMs = max(f.AgeMs, o.Age.Milliseconds())
		}
	}
	f.Servers = len(all)
	f.Now = sumNow(all)
	return all, f
}

func sumNow(all []part) (n FleetNow) {
	var denied, failed float64
	for _, p := range all {
		is := &p.now
		n.CallsS, denied, failed = n.CallsS+is.calls, denied+is.denied, failed+is.failed
		n.P99us, n.KeysDenied = max(n.P99us, float64(is.p99)), max(n.KeysDenied, is.keysDenied)
		n.Clients, n.Repeats = n.Clients+is.clients, n.Repeats+is.repeats
		for _, c := range is.reservations {
			at := slices.IndexFunc(n.Reservations, func(o Count) bool { return o.Name == c.Name })
			if at < 0 {
				at, n.Reservations = len(n.Reservations), append(n.Reservations, Count{Name: c.Name})
			}
			n.Reservations[at].N += c.N
		}
	}
	n.DeniedRatio, n.ErrorRatio = ratio(denied, n.CallsS), ratio(failed, n.CallsS)
	return n
}

// ratio returns part divided by all, from 0 to 1; 0 if all is 0.
func ratio(part, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return rounded(min(1, part/all))
}

// addFleet turns o, the overview of this server, into an overview of all servers.
func (r *Reporter) addFleet(o *Overview, wait bool) {
	all, f := r.parts(wait)
	o.Fleet = &f
	byID := map[string]*Share{}
	for _, p := range all[1:] {
		byID[p.id] = p.Share
	}
	o.Servers = slices.Clone(o.Servers) // the list is copied, because the sample has it, too
	for i := range o.Servers {
		s := &o.Servers[i]
		is := byID[s.ID]
		if s.Self {
			is = all[0].Share
		}
		if is != nil {
			s.Verdict, s.Sick, s.CallsS, s.DeniedRatio = is.kind, is.sick, is.now.calls, ratio(is.now.denied, is.now.calls)
		}
	}
}

// fleetKeys does what [Reporter.Keys] does, for all servers.
func (r *Reporter) fleetKeys(u *acl.User, q *Query) FleetKeys {
	all, f := r.parts(!q.Known)
	denied, called := sumKeys(all, func(p part) *shareKeys { return &p.denied }), sumKeys(all, func(p part) *shareKeys { return &p.called })
	first := denied
	if q.ByCalls {
		first = called
	}
	is := FleetKeys{Fleet: f, Keys: []DeniedKey{}}
	at := r.rec.latest()
	for _, k := range first.keys {
		group := r.src.GroupOf(k.key)
		if len(is.Keys) == q.N {
			break
		}
		if !readable(u, k.key) || q.Group != "" && q.Group != group {
			continue
		}
		line := DeniedKey{
			DB: k.db, Key: Key(k.key), Group: Key(group), Command: k.command, Args: Key(k.args), RetryMs: k.retry, Since: at - k.since,
			Clients: k.callers, Servers: k.servers, MissingS: k.missing, Share: ratio(k.perSecond, first.perSecond),
		}
		line.Limit, _ = LimitWords(k.command, k.args)
		if d := denied.byName[k.keyName]; d != nil {
			line.DeniedS, line.RetryMs = d.perSecond, d.retry
		}
		if line.CallsS = line.DeniedS; called.byName[k.keyName] != nil {
			line.CallsS = max(line.CallsS, called.byName[k.keyName].perSecond)
		}
		if !f.whole() {
			line.MissingS = -1
		}
		is.Keys = append(is.Keys, line)
	}
	return is
}

// keysSum has keys of all servers, in descending order of their rates.
type keysSum struct {
	keys      []*keySum
	byName    map[keyName]*keySum
	perSecond float64
}

// keySum has a key of several servers.
type keySum struct {
	shareKey
	most    float64 // the highest rate of the key on one server, which has set the details of the key
	servers int     // number of servers that have the key in their lists
	missing float64 // an upper bound of the total rate of the key on servers that do not have it in their lists
}

// sumKeys adds up the keys of all parts. of returns the keys of one part.
func sumKeys(all []part, of func(p part) *shareKeys) keysSum {
	sum := keysSum{byName: map[keyName]*keySum{}}
	omitted := 0.0
	for _, p := range all {
		keys := of(p)
		sum.perSecond, omitted = sum.perSecond+keys.perSecond, omitted+keys.omitted
		for i := range keys.keys {
			k := &keys.keys[i]
			s := sum.byName[k.keyName]
			if s == nil {
				s = &keySum{shareKey: shareKey{keyName: k.keyName, callers: []Caller{}}, most: -1}
				sum.byName[k.keyName], sum.keys = s, append(sum.keys, s)
			}
			s.add(k, p, keys.omitted)
		}
	}
	for _, s := range sum.keys {
		s.missing = max(0, omitted-s.missing)
	}
	slices.SortFunc(sum.keys, func(a, b *keySum) int {
		return cmp.Or(cmp.Compare(b.perSecond, a.perSecond), cmp.Compare(a.db, b.db), cmp.Compare(a.key, b.key))
	})
	return sum
}

// add adds k, a key of the server p. omitted is the maximum rate of a key that p has left out; until the sum is whole,
// missing is the sum of these.
func (s *keySum) add(k *shareKey, p part, omitted float64) {
	if k.perSecond > s.most {
		s.most, s.command, s.args, s.retry = k.perSecond, k.command, k.args, k.retry
	}
	s.perSecond, s.servers, s.missing = s.perSecond+k.perSecond, s.servers+1, s.missing+omitted
	s.since = max(s.since, k.since+p.age.Milliseconds())
	for _, c := range k.callers[:min(len(k.callers), stats.MaxSeenClients-len(s.callers))] {
		c.Server = p.name
		s.callers = append(s.callers, c)
	}
}

// fleetGroups does what [Reporter.Groups] does, for all servers.
func (r *Reporter) fleetGroups(wait bool) FleetGroups {
	all, f := r.parts(wait)
	top, sums := map[string]float64{}, map[string]float64{}
	for _, k := range sumKeys(all, func(p part) *shareKeys { return &p.denied }).keys {
		g := r.src.GroupOf(k.key)
		sums[g] += k.perSecond
		top[g] = max(top[g], k.perSecond)
	}
	groups := sumGroups(all)
	for i := range groups {
		g := &groups[i]
		g.TopShare = ratio(top[string(g.Group)], sums[string(g.Group)])
	}
	return FleetGroups{f, groups}
}

// sumGroups adds up the groups of all parts, the most called first. Groups that a server has left out are in
// [stats.OtherGroups].
func sumGroups(all []part) []Group {
	type sum struct {
		shareGroup
		most    float64
		servers int
	}
	byName := map[string]*sum{}
	add := func(name string, g *shareGroup) {
		s := byName[name]
		if s == nil {
			s = &sum{most: -1}
			byName[name] = s
		}
		command, args := s.command, s.args
		s.add(g)
		if s.servers++; g.calls > s.most && g.command != "" {
			s.most, command, args = g.calls, g.command, g.args
		}
		s.command, s.args = command, args
	}
	for _, p := range all {
		rest := p.rest
		for i := range p.groups {
			if g := &p.groups[i]; g.name == stats.OtherGroups {
				rest.add(g)
			} else {
				add(g.name, g)
			}
		}
		if rest.name = stats.OtherGroups; rest != (shareGroup{name: stats.OtherGroups}) {
			add(rest.name, &rest)
		}
	}
	groups := make([]Group, 0, len(byName))
	for name, s := range byName {
		g := Group{
			Group: Key(name), CallsS: s.calls, DeniedRatio: ratio(s.denied, s.calls), NearRatio: ratio(s.near, s.calls), KeysDenied: s.keysDenied,
			Spark: ratios(&s.spark), Args: Key(s.args), Rest: name == stats.NoGroup || name == stats.OtherGroups, Servers: s.servers,
		}
		if s.command != "" {
			g.Limit = limitText(s.command, s.args, s.args)
		}
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.CallsS, a.CallsS), cmp.Compare(a.Group, b.Group))
	})
	return groups
}

// fleetHistory is [Reporter.History] for all servers, in the steps of a share. It ends before the first step that a
// server in the sum has not finished. The durations are from this server.
func (r *Reporter) fleetHistory(u *acl.User, seconds int64, wait bool) History {
	all, f := r.parts(wait)
	h := sumHistory(all, seconds, r.rec.latest())
	for _, c := range r.Changes(u, 0) {
		if c.At >= h.From {
			h.Marks = append(h.Marks, c)
		}
	}
	h.Fleet = &f
	return h
}

// sumHistory adds up the histories of the given number of seconds before now, in Unix milliseconds. The first of all is
// this server.
func sumHistory(all []part, seconds, now int64) History {
	which := 0
	for seconds > shareSteps[which].span && which < len(shareSteps)-1 {
		which++
	}
	size := shareSteps[which].size * 1000
	newest := now / size
	count := min(max(1, seconds)*1000/size+1, maxShareSteps)
	from := newest - count + 1
	h := History{
		Step: size / 1000, From: from * size, Allowed: make([]int64, count), Denied: make([]int64, count), Errors: make([]int64, count),
		P50us: make([]float64, count), P99us: make([]float64, count), Marks: []Change{},
	}
	first, end := count, count
	for i, p := range all {
		is := &p.histories[which]
		began := now - (p.age + is.since).Milliseconds() // the beginning of the newest step, which has not ended
		last := int64(math.Round(float64(began)/float64(size))) - from
		end = min(end, last)
		for j := range is.steps {
			at := last - int64(len(is.steps)-1-j)
			if at < 0 || at >= count {
				continue
			}
			s := &is.steps[j]
			h.Allowed[at], h.Denied[at], h.Errors[at] = h.Allowed[at]+int64(s.allowed), h.Denied[at]+int64(s.denied), h.Errors[at]+int64(s.failed)
			if first = min(first, at); i == 0 {
				h.P50us[at], h.P99us[at] = float64(s.p50), float64(s.p99)
			}
		}
	}
	first = max(0, min(first, end))
	end = max(first, end)
	h.From += first * size
	h.Allowed, h.Denied, h.Errors, h.P50us, h.P99us = h.Allowed[first:end], h.Denied[first:end], h.Errors[first:end], h.P50us[first:end], h.P99us[first:end]
	return h
}
