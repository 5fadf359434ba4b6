package policies

import (
	"slices"
	"strings"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/resp"
)

// setOverride is the Run function of RL.OVERRIDE SET. Times in its clauses are in the unit of the
// policy: milliseconds if the policy has MS, and otherwise seconds.
func setOverride(c *command.Call) {
	var w words
	if err := w.parse(c.Args[4:], options{expires: true, text: "COMMENT", limits: true}); err != "" {
		c.Fail(c.Usage(err))
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

// listOverrides is the Run function of RL.OVERRIDE LIST. It replies with the overrides that are in
// force, sorted by pattern.
func listOverrides(c *command.Call) {
	t, name := tableOf(c.Server), string(c.Args[2])
	if t.Policy(c.Args[2]) == nil {
		c.Fail(command.NoPolicy(c.Args[2]))
		return
	}
	r := c.Server.Options.Policies
	outside(c, func() {
		now := c.Store.Now()
		found := entriesOf(t, name, policy.Override, now)
		c.W.Array(len(found))
		for _, e := range found {
			writeOverride(c.W, e, r.Defines(e), now)
		}
	})
}

// listSize is the ReplySize function of RL.OVERRIDE LIST. It returns the approximate maximum size
// of the reply in bytes.
func listSize(cl *command.Client, _ env.Store, _ *command.Command, _ [][]byte) int {
	return tableOf(cl.Server).Sizes().Overrides * overrideBytes
}

// overrideBytes is the approximate size, in bytes, of an override in a reply.
const overrideBytes = 256

// tableOf returns the table of the policies in force, or an empty table if the server keeps no
// policies. A table never changes, so a command uses the same table for all its lookups.
func tableOf(s *command.Server) *policy.Table {
	if s.Options.Policies == nil {
		return &policy.Table{}
	}
	return s.Options.Policies.Table()
}

// entriesOf returns the entries of kind that are in force at now for the policy called name, sorted
// by pattern.
func entriesOf(t *policy.Table, name string, kind policy.Kind, now limit.Instant) (found []*policy.Entry) {
	t.Each(name, func(e *policy.Entry) bool {
		if e.Kind == kind && e.InForce(now) {
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
	w.Int(e.TTL(now))
	w.BulkString("file")
	w.Int(elements.OneIf(defined))
}

// writeLimits writes the fields limits and ms of a map: the texts of the clauses of l, and whether
// their times are in milliseconds.
func writeLimits(w *resp.Writer, l *policy.Limits) {
	w.BulkString("limits")
	w.Array(len(l.Text))
	for _, text := range l.Text {
		w.BulkString(text)
	}
	w.BulkString("ms")
	w.Int(elements.OneIf(l.Millis))
}
