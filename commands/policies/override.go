package policies

import (
	"slices"
	"strings"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/resp"
)

// setOverride is RL.OVERRIDE SET. Times of its clauses are in the unit of the policy.
func setOverride(c *command.Call) {
	var w words
	if err := w.parse(c.Args[4:], options{expires: true, text: "COMMENT", limits: true}); err != "" {
		c.Fail(err)
		return
	}
	until, err := w.until(c)
	if err != "" {
		c.Fail(err)
		return
	}
	setEntry(c, func(main *policy.Entry, _ limit.Instant) (*policy.Entry, resp.Error) {
		if main == nil {
			return nil, command.NoPolicy(c.Args[2])
		}
		limits, err := policy.ParseLimits(w.limits, main.Limits.Millis, bounds(c))
		return &policy.Entry{
			Kind: policy.Override, Pattern: string(c.Args[3]), Limits: limits, Comment: string(w.text), Until: until,
		}, err
	})
}

func deleteOverride(c *command.Call) { deleteEntry(c, policy.Override) }

// listOverrides is RL.OVERRIDE LIST.
func listOverrides(c *command.Call) {
	r, name := c.Server.Options.Policies, string(c.Args[2])
	if r == nil || r.Table().Policy(c.Args[2]) == nil {
		c.Fail(command.NoPolicy(c.Args[2]))
		return
	}
	var found []*policy.Entry
	c.OffloadSized(
		func(env.Store) int { return r.Table().Sizes().Overrides * overrideBytes },
		func(st env.Store, w *resp.Writer) {
			found = entriesOf(c.Server, name, policy.Override)
			w.Array(len(found))
			for _, e := range found {
				writeOverride(w, e, r.Defines(e), st.Now())
			}
		})
}

// overrideBytes is about what an override takes in a reply.
const overrideBytes = 256

// entriesOf returns the entries of a kind and a policy, by pattern.
func entriesOf(s *command.Server, name string, kind policy.Kind) (found []*policy.Entry) {
	s.Options.Policies.Table().Each(name, func(e *policy.Entry) bool {
		if e.Kind == kind {
			found = append(found, e)
		}
		return true
	})
	slices.SortFunc(found, func(a, b *policy.Entry) int { return strings.Compare(a.Pattern, b.Pattern) })
	return found
}

func writeOverride(w *resp.Writer, e *policy.Entry, defined bool, now limit.Instant) {
	w.Map(6)
	w.BulkString("pattern")
	w.BulkString(e.Pattern)
	writeLimits(w, e.Limits)
	w.BulkString("comment")
	w.BulkString(e.Comment)
	w.BulkString("ttl")
	w.Int(ttl(e, now))
	w.BulkString("file")
	w.Int(one(defined))
}

// writeLimits writes the fields limits and ms of a map.
func writeLimits(w *resp.Writer, l *policy.Limits) {
	w.BulkString("limits")
	w.Array(len(l.Text))
	for _, text := range l.Text {
		w.BulkString(text)
	}
	w.BulkString("ms")
	w.Int(one(l.Millis))
}

// ttl is how many seconds are left of an entry, rounded up; -1 if it stays.
func ttl(e *policy.Entry, now limit.Instant) int64 {
	if e.Until == limit.MaxInstant {
		return -1
	}
	return limit.SecondsUp(max(0, e.Until.Sub(now)/time.Nanosecond))
}
