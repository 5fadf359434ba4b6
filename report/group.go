package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// sketchMinutes is the number of minutes for which denied keys are counted.
const sketchMinutes = 5

// addGroups adds the counts of the groups and the seen calls of the sample s, which was taken in
// second n. It ignores new groups beyond maxGroups. If calls have lacked memory, it sets r.lacking
// to the group with most of them. It calls r.changed for each group whose limit has changed.
func (r *Recorder) addGroups(n int64, s *Sample) {
	for i := range s.Groups {
		c := &s.Groups[i]
		g := r.groups[c.Name]
		if g == nil {
			if len(r.groups) >= maxGroups {
				continue
			}
			g = &group{name: c.Name, started: s.At, steps: newRing[groupTime](groupSteps), recent: newRing[GroupSample](window + 1), denied: newRing[stats.Sketch](sketchMinutes)}
			r.groups[c.Name] = g
		}
		was := g.total
		g.total.grow(&g.base, c)
		calls, denied := g.total.Calls-was.Calls, g.total.Denied-was.Denied
		*g.recent.at(n) = g.total
		t := g.steps.at(n / groupStep)
		t.allowed += uint32(max(0, calls-denied))
		t.denied += uint32(denied)
		g.denied.at(n / 60)
	}
	most := int64(0)
	for i := range s.Seen {
		seen := &s.Seen[i]
		if seen.Refused > most {
			most, r.lacking = seen.Refused, seen.Name
		}
		g := r.groups[seen.Name]
		if g == nil {
			continue
		}
		g.denied.at(n / 60).Merge(&seen.Denied)
		began := g.limits.began
		if was, is, changed := g.limits.add(s.At, seen.Calls); changed && r.changed != nil {
			g.limits.before = g.ratioBefore(second(began))
			r.changed("limit", fmt.Sprintf("Limit of group %s changed in calls: %s, was %s", Key(g.name).shown(), is, was), g.name)
		}
	}
}

// grow sets c to the counts since the start: base, which are those before the last reset, plus s,
// which are those since then. Counts never decrease.
func (c *GroupSample) grow(base, s *GroupSample) {
	c.Name = s.Name
	c.Calls, c.Denied, c.Near = max(c.Calls, base.Calls+s.Calls), max(c.Denied, base.Denied+s.Denied), max(c.Near, base.Near+s.Near)
}

// ratioBefore returns the median ratio of denied calls in the ten minutes before the second at; -1
// if there were no calls.
func (g *group) ratioBefore(at int64) float64 {
	var ratios []float64
	for n := at/groupStep - 60; n < at/groupStep; n++ {
		if t, ok := g.steps.get(n); ok && t.allowed+t.denied > 0 {
			ratios = append(ratios, float64(t.denied)/float64(int64(t.allowed)+int64(t.denied)))
		}
	}
	return median(ratios)
}

// rates returns the number of calls per second of the group, of denied calls and of calls near the
// limit, over the last ten seconds. All are 0 before the first sample.
func (g *group) rates() (calls, denied, near float64) {
	newest, ok := g.recent.get(g.recent.next - 1)
	if !ok {
		return 0, 0, 0
	}
	oldest := GroupSample{}
	from := g.recent.first
	for ; from < g.recent.next-1; from++ {
		if o, ok := g.recent.get(from); ok && o.Name != "" {
			oldest = *o
			break
		}
	}
	if oldest.Name == "" {
		from = g.recent.next - 2
	}
	seconds := float64(max(1, g.recent.next-1-from))
	return float64(newest.Calls-oldest.Calls) / seconds, float64(max(0, newest.Denied-oldest.Denied)) / seconds, float64(max(0, newest.Near-oldest.Near)) / seconds
}

// keysDenied returns the approximate number of keys that were denied in the five minutes before the
// second now.
func (g *group) keysDenied(now int64) int64 {
	var all stats.Sketch
	for n := now/60 - sketchMinutes + 1; n <= now/60; n++ {
		if s, ok := g.denied.get(n); ok {
			all.Merge(s)
		}
	}
	return all.Estimate()
}

const (
	// enoughCalls is the approximate number of calls of a group after which the limit of most of
	// them is determined. About a twelfth of the calls is seen.
	enoughCalls = 12 * 16
	// enoughTime is the minimum time over which these calls are spread, since for a moment a single
	// job may be the only caller.
	enoughTime = 5 * time.Second
	// maxKinds is the maximum number of limits of a group that are distinguished until there are
	// enough calls.
	maxKinds = 16
)

// add adds seen, the calls that were seen until now. After enoughCalls calls over at least
// enoughTime it determines the most frequent limit. If at least 60 % of the calls have that limit,
// and at most 30 % the previous one, changed is true, and was and is are the two limits in words.
func (l *limits) add(now limit.Instant, seen []stats.SeenCalls) (was, is string, changed bool) {
	if l.counts == nil {
		l.counts, l.calls = make(map[string]int64), make(map[string]stats.SeenCall)
	}
	for _, c := range seen {
		key := c.Command + " " + c.Args[:min(c.Limit, len(c.Args))]
		if _, known := l.counts[key]; known || len(l.counts) < maxKinds {
			l.counts[key] += c.Count
			l.calls[key] = c.SeenCall
		}
		l.total += c.Count
	}
	if l.began == 0 {
		l.began = now
	}
	if l.total < enoughCalls || now.Sub(l.began) < enoughTime {
		return "", "", false
	}
	most := ""
	for key, n := range l.counts {
		if n > l.counts[most] || n == l.counts[most] && key < most {
			most = key
		}
	}
	before, now2 := l.command+" "+l.args, l.calls[most]
	share := func(key string) float64 { return float64(l.counts[key]) / float64(l.total) }
	switch {
	case l.args == "":
		l.set(now2)
	case most != before && share(most) >= 0.6 && share(before) <= 0.3:
		was, l.wasRate = l.text, l.rate
		l.was, l.changed = was, now
		l.set(now2)
		is, changed = l.text, true
	}
	clear(l.counts)
	clear(l.calls)
	l.total, l.began = 0, 0
	return was, is, changed
}

// set makes the limit of the call c the limit of most calls. If there are no words for the limit,
// its text is the command with its arguments.
func (l *limits) set(c stats.SeenCall) {
	l.command, l.args = c.Command, c.Args[:min(c.Limit, len(c.Args))]
	_, l.rate = LimitWords(c.Command, c.Args)
	l.text = limitText(c.Command, c.Args, l.args)
}

// limitText returns the limit of a call in words: the command with the arguments by, which give the limit, if there are no
// words for it.
func limitText(command, args, by string) string {
	words, _ := LimitWords(command, args)
	if words == "" {
		words = command + " " + Key(by).shown()
	}
	return words
}

// Groups returns all groups that have a history, at most maxGroups, the most called first. top
// returns the share that a group's most denied key has of the group's denials.
func (r *Recorder) Groups(top func(group string) float64) []Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Group, 0, len(r.groups))
	for _, g := range r.groups {
		all = append(all, r.describe(g, top))
	}
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.CallsS, a.CallsS), cmp.Compare(a.Group, b.Group))
	})
	return all
}

func (r *Recorder) describe(g *group, top func(group string) float64) Group {
	calls, denied, near := g.rates()
	d := Group{
		Group: Key(g.name), CallsS: calls, KeysDenied: g.keysDenied(second(r.last.At)), Spark: r.spark(g),
		Limit: g.limits.text, Args: Key(g.limits.args), Rest: g.name == stats.NoGroup || g.name == stats.OtherGroups,
	}
	if calls > 0 {
		d.DeniedRatio, d.NearRatio = denied/calls, near/calls
	}
	if top != nil {
		d.TopShare = top(g.name)
	}
	return d
}

const sparkSteps = 60

// spark returns the ratio of denied calls in each of 60 steps of the last hour, the oldest first;
// -1 for a step without calls.
func (r *Recorder) spark(g *group) []float64 {
	times := r.sparkTimes(g)
	return ratios(&times)
}

// ratios returns the ratio of denied calls in each step; -1 for a step without calls.
func ratios(times *[sparkSteps]groupTime) []float64 {
	line := make([]float64, sparkSteps)
	for i := range times {
		allowed, denied := int64(times[i].allowed), int64(times[i].denied)
		if line[i] = -1; allowed+denied > 0 {
			line[i] = rounded(float64(denied) / float64(allowed+denied))
		}
	}
	return line
}

// sparkTimes returns the calls of g in each of 60 steps of the last hour, the oldest first.
func (r *Recorder) sparkTimes(g *group) (times [sparkSteps]groupTime) {
	now := second(r.last.At) / groupStep
	const each = groupSteps / sparkSteps
	for i := range times {
		var allowed, denied int64
		for j := range int64(each) {
			if t, ok := g.steps.get(now - now%each - int64(sparkSteps-1-i)*each + j); ok {
				allowed, denied = allowed+int64(t.allowed), denied+int64(t.denied)
			}
		}
		times[i] = groupTime{allowed: capped(allowed), denied: capped(denied)}
	}
	return times
}

// rounded rounds ratio, which must not be negative, to four decimal places.
func rounded(ratio float64) float64 { return float64(int64(ratio*1e4+0.5)) / 1e4 }
