package records_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/remote/records"
)

// called is the kind, the policy and the pattern of an entry.
type called struct {
	kind            policy.Kind
	policy, pattern string
}

// item is an entry of the model: a limit of so many calls a minute or a factor in thousandths, until an instant.
type item struct {
	limit, factor int64
	until         limit.Instant
}

func (i item) String() string {
	return fmt.Sprintf("%d calls, factor %d, until %d", i.limit, i.factor, i.until)
}

// entries are all entries in force at a version, or those of a file. They are not changed any more.
type entries map[called]item

// op is a part of a change: it sets an entry, deletes one, or deletes all of a policy.
type op struct {
	called
	item
	deletes, all bool
}

// with returns the entries after ops.
func (e entries) with(ops []op) entries {
	is := maps.Clone(e)
	for _, o := range ops {
		switch {
		case o.all:
			maps.DeleteFunc(is, func(c called, _ item) bool { return c.policy == o.policy })
		case o.deletes:
			delete(is, o.called)
		default:
			is[o.called] = o.item
		}
	}
	return is
}

// version is a version of the records that the engine has had.
type version struct {
	records.Version
	entries  entries
	previous *version
	made     *change // nil for one that removes ended entries
}

// view is a version as a server with a policy file has it.
type view struct{ file, entries entries }

func (v view) get(c called) (item, bool) {
	if i, there := v.file[c]; there {
		return i, true
	}
	i, there := v.entries[c]
	return i, there
}

// find returns the entry of the kind for key that is in force at now. Patterns are a key, or all keys.
func (v view) find(kind policy.Kind, name, key string, now limit.Instant) (item, bool) {
	for _, pattern := range []string{key, "k*"} {
		if i, there := v.get(called{kind, name, pattern}); there && now < i.until {
			return i, true
		}
	}
	return item{}, false
}

// answer returns the answer to a call whose quantity is above any limit: nothing is charged, so it shows the entries in force
// and nothing else.
func (v view) answer(name, key string, now limit.Instant) string {
	main, there := v.get(called{policy.Main, name, ""})
	if !there {
		return "-NOPOLICY No such policy '" + name + "'\r\n"
	}
	n := main.limit
	if o, there := v.find(policy.Override, name, key, now); there {
		n = o.limit
	}
	if b, there := v.find(policy.Boost, name, key, now); there {
		n = n * b.factor / 1000
	}
	if _, exempt := v.find(policy.Exempt, name, key, now); exempt {
		return inproc.Five(0, n, n, -1, 0)
	}
	if b, blocked := v.find(policy.Block, name, key, now); blocked {
		left := int64(-1)
		if b.until != limit.MaxInstant {
			left = int64((time.Duration(b.until-now) + time.Second - 1) / time.Second)
		}
		return inproc.Five(1, n, 0, left, left)
	}
	return inproc.Five(1, n, n, -1, 0)
}

// answers calls yield with the answers that a server may give whose clock is apart from now by slack at most, until it
// returns true. The result is whether it has.
func (v view) answers(name, key string, now limit.Instant, slack time.Duration, yield func(answer string) bool) bool {
	at := []limit.Instant{now}
	for _, kind := range []policy.Kind{policy.Override, policy.Boost, policy.Exempt, policy.Block} {
		for _, pattern := range []string{key, "k*"} {
			i, there := v.get(called{kind, name, pattern})
			if !there || i.until == limit.MaxInstant {
				continue
			}
			if apart(i.until, now) <= slack {
				at = append(at, i.until-1, i.until)
			}
			if kind == policy.Block { // it shows the seconds that are left
				at = append(at, now.Add(-slack), now.Add(slack))
			}
		}
	}
	return slices.ContainsFunc(at, func(now limit.Instant) bool { return yield(v.answer(name, key, now)) })
}

func apart(a, b limit.Instant) time.Duration { return time.Duration(a - b).Abs() }

// inForce returns the entries in force at now, without those that end within slack of it.
func (v view) inForce(now limit.Instant, slack time.Duration) map[string]string {
	all := map[string]string{}
	add := func(c called, i item) {
		if i.until > now && (i.until == limit.MaxInstant || apart(i.until, now) > slack) {
			all[fmt.Sprint(c)] = i.String()
		}
	}
	for c, i := range v.entries {
		if _, hidden := v.file[c]; !hidden {
			add(c, i)
		}
	}
	for c, i := range v.file {
		add(c, i)
	}
	return all
}

// tableInForce does what inForce does, for the table of a server.
func tableInForce(t *policy.Table, now limit.Instant, slack time.Duration) map[string]string {
	is := view{entries: entries{}}
	t.Each("", func(e *policy.Entry) bool {
		i := item{factor: e.Factor, until: e.Until}
		if e.Limits != nil {
			_, _ = fmt.Sscanf(e.Limits.Text[0], "SW %d 60", &i.limit)
		}
		is.entries[called{e.Kind, e.Policy, e.Pattern}] = i
		return true
	})
	return is.inForce(now, slack)
}

// fileOf returns a policy file that has a policy of its own, and may hide records.
func fileOf(n int64, hides bool) (text string, is entries) {
	is = entries{{policy.Main, "filed", ""}: {limit: n, until: limit.MaxInstant}}
	var b strings.Builder
	b.WriteString("policies:\n")
	if hides {
		is[called{policy.Main, "api", ""}] = item{limit: n + 1, until: limit.MaxInstant}
		is[called{policy.Override, "api", "k1"}] = item{limit: n + 2, until: limit.MaxInstant}
		fmt.Fprintf(&b, "  api:\n    limits: [SW %d 60]\n    overrides:\n      k1:\n        limits: [SW %d 60]\n", n+1, n+2)
	}
	fmt.Fprintf(&b, "  filed:\n    limits: [SW %d 60]\n", n)
	return b.String(), is
}
