package report

import (
	"strings"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/stats"
)

// Mark returns the letters for the change with the given ID: A, B, ... Z, AA, AB, ... from the ID 1
// on.
func Mark(id int64) string {
	mark := ""
	for ; id > 0; id = (id - 1) / 26 {
		mark = string(rune('A'+(id-1)%26)) + mark
	}
	return mark
}

// changeOf converts a change for JSON. Only a change of the kind limit has a Group.
func changeOf(c stats.Change) Change {
	is := Change{ID: c.ID, At: c.At, Mark: Mark(c.ID), Kind: c.Kind, Text: c.Text, By: c.By}
	if c.Kind == "limit" && c.Group != "" {
		g := Key(c.Group)
		is.Group = &g
	}
	return is
}

// Changes converts all, changes with the oldest first, for JSON, with the newest first. It sets
// Around of the changes in the last hour, as far as the history is known.
func (r *Recorder) Changes(all []stats.Change) []Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := make([]Change, 0, len(all))
	for i := len(all) - 1; i >= 0; i-- {
		c := changeOf(all[i])
		c.Around = r.around(c.At, c.Group)
		changes = append(changes, c)
	}
	return changes
}

// aroundMinutes is the number of minutes before a change, and after it, whose calls are compared.
const aroundMinutes = 10

// around compares the calls of the aroundMinutes before civil, in Unix milliseconds, with the calls
// of the aroundMinutes after it. It counts only the calls of the group of; if of is nil, it counts
// all calls. The result is nil if the history has too little of these times.
func (r *Recorder) around(civil int64, of *Key) *Around {
	if r.last.At == 0 {
		return nil
	}
	now := second(r.last.At)
	at := now - (r.last.Civil-civil)/1000
	from, to := at-aroundMinutes*60, min(now, at+aroundMinutes*60)
	if at <= second(r.started)+groupStep || to < at+groupStep || from < now-secondSteps {
		return nil
	}
	a := &Around{Group: of, Minutes: aroundMinutes}
	a.Before, a.After = r.period(from, at, of), r.period(at, to, of)
	return a
}

// period sums up the calls from the second from until before the second to. It counts only the
// calls of the group of; if of is nil, it counts all calls.
func (r *Recorder) period(from, to int64, of *Key) Period {
	first := max(from, second(r.started), r.seconds.first)
	var all, mine sums
	for n := first; n < to; n++ {
		if t, ok := r.seconds.get(n); ok {
			all.allowed, all.denied = all.allowed+int64(t.allowed), all.denied+int64(t.denied)
		}
	}
	if mine = all; of != nil {
		mine = sums{}
		if g := r.groups[string(*of)]; g != nil {
			for n := first / groupStep; n < to/groupStep; n++ {
				if t, ok := g.steps.get(n); ok {
					mine.allowed, mine.denied = mine.allowed+int64(t.allowed), mine.denied+int64(t.denied)
				}
			}
		}
	}
	p := Period{CallsS: float64(mine.allowed+mine.denied) / float64(max(1, to-first)), PerGranted: -1, DeniedElse: -1}
	if mine.allowed > 0 {
		p.PerGranted = float64(mine.allowed+mine.denied) / float64(mine.allowed)
	}
	if of == nil {
		if all.allowed+all.denied > 0 {
			p.DeniedElse = float64(all.denied) / float64(all.allowed+all.denied)
		}
	} else if others := all.allowed + all.denied - mine.allowed - mine.denied; others > 0 {
		p.DeniedElse = min(1, max(0, float64(all.denied-mine.denied)/float64(others)))
	}
	return p
}

// hour is the maximum age, in milliseconds, of a change that may explain an observation.
const hour = int64(3600e3)

// explains returns the newest of the changes, which have the newest first, that is of one of the
// kinds and was made in the hour before the instant before. A change of the ACL counts only if it
// is about the user called name or about all users. A change of the configuration counts only if it
// is about requirepass and name is default. The result is nil if there is no such change.
func explains(changes []Change, before int64, name string, kinds ...string) *Change {
	for i := range changes { // the newest first
		c := &changes[i]
		if c.At > before || c.At < before-hour {
			continue
		}
		for _, kind := range kinds {
			if c.Kind == kind && (kind != "acl" || c.Text == "ACL LOAD" || named(c.Text, name)) &&
				(kind != "config" || name == acl.DefaultUser && strings.Contains(c.Text, "requirepass")) {
				return c
			}
		}
	}
	return nil
}

func named(text, name string) bool {
	for _, word := range strings.Fields(text) {
		if word == name {
			return true
		}
	}
	return false
}
