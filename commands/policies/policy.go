package policies

import (
	"slices"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/resp"
)

// setPolicy is the Run function of RL.POLICY SET. It creates the policy or replaces its limits.
func setPolicy(c *command.Call) {
	var w words
	if err := w.parse(c.Args[3:], options{millis: true, flags: true, text: "COMMENT", servers: true, limits: true}); err != "" {
		c.Fail(c.Usage(err))
		return
	}
	limits, err := policy.ParseLimits(w.limits, w.millis, bounds(c))
	if err != "" {
		c.Fail(err)
		return
	}
	by := author(c)
	by.Force = w.force
	done := putEntry(c, by, func(*policy.Entry, limit.Instant) (*policy.Entry, resp.Error) {
		return &policy.Entry{
			Kind: policy.Main, Limits: limits, Flags: w.flags, Comment: string(w.text), Until: limit.MaxInstant,
		}, ""
	})
	if done && (!w.sync || reachesAll(c)) {
		c.OK()
	}
}

// reachesAll waits until all servers with the same store have the policies of this server, and reports whether they do.
// If not, it has replied with the error.
func reachesAll(c *command.Call) bool {
	sync := c.Server.Options.SyncPolicies
	if sync == nil {
		return true
	}
	var err error
	c.Server.Host.Work.Aside(c, func() { err = sync() })
	if err != nil {
		fail(c, err)
	}
	return err == nil
}

// tryPolicy is the Run function of RL.POLICY TRY. Times in its clauses are in the unit of the
// policy: milliseconds if the policy has MS, and otherwise seconds. The counters of a new candidate
// begin at 0.
func tryPolicy(c *command.Call) {
	if len(c.Args) == 4 && arg.IsWord(c.Args[3], "OFF") {
		stopTrying(c)
		return
	}
	var w words
	if err := w.parse(c.Args[3:], options{limits: true}); err != "" {
		c.Fail(c.Usage(err))
		return
	}
	var counts *policy.Counts
	setEntry(c, func(main *policy.Entry, _ limit.Instant) (*policy.Entry, resp.Error) {
		if main == nil {
			return nil, command.NoPolicy(c.Args[2])
		}
		limits, err := policy.ParseLimits(w.limits, main.Limits.Millis, bounds(c))
		counts = c.Server.Options.Policies.Table().Policy(c.Args[2]).Counts
		return &policy.Entry{Kind: policy.Candidate, Limits: limits, Until: limit.MaxInstant}, err
	})
	if counts != nil && !c.Failed {
		counts.ResetTry()
	}
}

func stopTrying(c *command.Call) {
	done := update(c, func(b *policy.Builder, _ limit.Instant) ([]registry.Edit, error) {
		if b.Get(policy.Main, string(c.Args[2]), "") == nil {
			return nil, command.NoPolicy(c.Args[2])
		}
		if e := b.Get(policy.Candidate, string(c.Args[2]), ""); e != nil {
			return []registry.Edit{registry.Delete(e)}, nil
		}
		return nil, nil
	})
	if done {
		c.OK()
	}
}

// deletePolicy is the Run function of RL.POLICY DEL. It deletes the policy and all its entries. The
// states of the policy's keys stay until they expire.
func deletePolicy(c *command.Call) {
	name, there := string(c.Args[2]), false
	done := update(c, func(b *policy.Builder, _ limit.Instant) (edits []registry.Edit, _ error) {
		if there = b.Get(policy.Main, name, "") != nil; !there {
			return nil, nil
		}
		b.Each(name, func(e *policy.Entry) bool {
			edits = append(edits, registry.Delete(e))
			return true
		})
		return edits, nil
	})
	if done {
		c.W.Int(elements.OneIf(there))
	}
}

// listPolicies is the Run function of RL.POLICY LIST. It replies with the names in lexicographical
// order.
func listPolicies(c *command.Call) {
	r := c.Server.Options.Policies
	if r == nil {
		c.Fail(errNone)
		return
	}
	var names []string
	r.Table().EachPolicy(func(p *policy.Policy) { names = append(names, p.Name) })
	slices.Sort(names)
	c.W.Array(len(names))
	for _, name := range names {
		c.W.BulkString(name)
	}
}

// maxShown is the maximum number of boosts, of blocks and of exemptions that RL.POLICY GET shows.
const maxShown = 100

// getPolicy is the Run function of RL.POLICY GET. It replies with the policy, its temporary entries
// and its counters.
func getPolicy(c *command.Call) { outside(c, func() { writePolicy(c) }) }

func writePolicy(c *command.Call) {
	t := tableOf(c.Server)
	p, now := t.Policy(c.Args[2]), c.Store.Now()
	if p == nil {
		c.Fail(command.NoPolicy(c.Args[2]))
		return
	}
	w := c.W
	w.Map(14 + len(policy.Switches))
	w.BulkString("name")
	w.BulkString(p.Name)
	writeLimits(w, p.Main.Limits)
	for _, s := range policy.Switches {
		w.BulkString(s.Field)
		w.Int(elements.OneIf(*s.Of(&p.Main.Flags)))
	}
	w.BulkString("key")
	if p.Main.Key.IP {
		w.BulkString(p.Main.Key.String())
	} else {
		w.Null()
	}
	w.BulkString("notify")
	if p.Main.Notify > 0 {
		w.BulkString(policy.ShareText(p.Main.Notify))
	} else {
		w.Null()
	}
	w.BulkString("classes")
	classes := p.Main.ClassList()
	w.Array(len(classes))
	for _, c := range classes {
		w.BulkString(c.String())
	}
	w.BulkString("comment")
	w.BulkString(p.Main.Comment)
	w.BulkString("file")
	w.Int(elements.OneIf(c.Server.Options.Policies.Fixed(p.Main)))
	w.BulkString("try")
	if p.Candidate == nil {
		w.Null()
	} else {
		w.Array(len(p.Candidate.Limits.Text))
		for _, text := range p.Candidate.Limits.Text {
			w.BulkString(text)
		}
	}
	w.BulkString("overrides")
	w.Int(int64(len(entriesOf(t, p.Name, policy.Override, now))))
	for _, k := range []struct {
		name string
		kind policy.Kind
	}{{"boosts", policy.Boost}, {"blocks", policy.Block}, {"exemptions", policy.Exempt}} {
		w.BulkString(k.name)
		writeTemporary(w, entriesOf(t, p.Name, k.kind, now), now)
	}
	w.BulkString("counts")
	writeCounts(w, p.Counts)
}

// writeTemporary writes the first maxShown entries of all, which are the boosts, the blocks or the
// exemptions in force at now.
func writeTemporary(w *resp.Writer, all []*policy.Entry, now limit.Instant) {
	all = all[:min(len(all), maxShown)]
	w.Array(len(all))
	for _, e := range all {
		w.Map(3)
		w.BulkString("pattern")
		w.BulkString(e.Pattern)
		if e.Kind == policy.Boost {
			w.BulkString("factor")
			w.Bulk(policy.AppendFactor(nil, e.Factor))
		} else {
			w.BulkString("reason")
			w.BulkString(e.Comment)
		}
		w.BulkString("ttl")
		w.Int(e.TTL(now))
	}
}

// writeCounts writes the counters of a policy. They count from the start of the server; those of
// the candidate from the latest RL.POLICY TRY.
func writeCounts(w *resp.Writer, n *policy.Counts) {
	w.Map(len(answers) + len(counters) + len(sums))
	for _, is := range slices.Concat(answers[:], counters[:], sums[:]) {
		w.BulkString(is.name)
		w.Int(is.of(n).Load())
	}
}
