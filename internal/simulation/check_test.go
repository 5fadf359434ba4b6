package simulation_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/slidingwindow"
)

// role returns INFO replication of a node; nil if it does not reply.
func (s *Sim) role(i int) map[string]string {
	if s.dead[i] {
		return nil
	}
	return fields(s.do(s.nodes[i], "INFO", "replication"))
}

// roles returns the roles of all nodes, and the primary: -1 unless there is exactly one.
func (s *Sim) roles() (all []map[string]string, primary int) {
	primary = -1
	for i := range s.nodes {
		is := s.role(i)
		all = append(all, is)
		if is["role"] == "master" {
			if primary >= 0 {
				return all, -1
			}
			primary = i
		}
	}
	return all, primary
}

// isWhole reports whether there is one primary that all others follow.
func (s *Sim) isWhole() bool {
	all, primary := s.roles()
	if primary < 0 || all[primary]["master_failover_state"] != "no-failover" {
		return false
	}
	for i, is := range all {
		if i != primary && (is["master_link_status"] != "up" || is["master_replid"] != all[primary]["master_replid"]) {
			return false
		}
	}
	return true
}

// converge waits until the cluster is whole and all nodes have the same state. An operator helps
// once: without Sentinel after a handover whose target has died, or a promotion whose commands were
// lost, and with Sentinel after a primary has restarted empty before Sentinel noticed.
func (s *Sim) converge(when string) bool {
	s.w.Settle()
	for tries := range 240 {
		all, primary := s.roles()
		equal := s.isWhole()
		direct := true
		for i, is := range all {
			equal = equal && is["master_repl_offset"] == all[primary]["master_repl_offset"]
			direct = direct && primary >= 0 && (i == primary || is["master_host"] == s.nodes[primary].Host)
		}
		if equal && !direct && !s.plan.Sentinel {
			s.elect(primary, "operator") // after a handover other replicas still follow the old primary
		}
		equal = equal && direct
		if equal {
			s.primary.Store(int32(primary))
			s.w.Advance(1200 * time.Millisecond) // logs that are synced each second are synced by then
			return true
		}
		// Sentinel does not act on a primary that replies but is empty, and that its replicas
		// refuse.
		if tries == 80 && (!s.plan.Sentinel || s.refuses(all)) {
			s.operate(all, primary)
		}
		s.w.Advance(250 * time.Millisecond)
	}
	all, _ := s.roles()
	s.fail("whole", "the cluster is not whole %s: %s", when, brief(all))
	return false
}

// operate makes all nodes follow one. If the primary restarted empty, that is a replica: its
// replicas refuse the primary then.
func (s *Sim) operate(all []map[string]string, primary int) {
	s.events.add("an operator looks: %s", brief(all))
	for i, is := range all {
		// A primary that waits for a replica refuses one that needs a full resynchronization, and
		// without TIMEOUT it waits forever, as in Redis.
		if is["master_failover_state"] == "waiting-for-sync" {
			s.events.add("FAILOVER ABORT says %q", s.do(s.nodes[i], "FAILOVER", "ABORT"))
		}
	}
	if primary < 0 || s.refuses(all) {
		primary = farthest(all, int(s.primary.Load()))
		if !s.plan.refuses() {
			s.excuse("an operator chooses a primary")
		}
		s.do(s.nodes[primary], "FAILOVER", "ABORT")
		s.do(s.nodes[primary], "REPLICAOF", "NO", "ONE")
	}
	s.elect(primary, "operator")
}

// refuses reports whether a replica refuses an empty primary.
func (s *Sim) refuses(all []map[string]string) bool {
	for _, is := range all {
		if strings.Contains(is["cell_repl_error"], "repl-refuse-empty") {
			return true
		}
	}
	return false
}

// farthest returns the complete replica with the greatest offset, or otherwise if there is none.
func farthest(all []map[string]string, otherwise int) int {
	best := int64(-1)
	for i, is := range all {
		at, err := strconv.ParseInt(is["slave_repl_offset"], 10, 64)
		if err == nil && is["role"] == "slave" && is["slave_priority"] != "0" && at > best {
			best, otherwise = at, i
		}
	}
	return otherwise
}

// brief returns the important fields of roles.
func brief(all []map[string]string) (text string) {
	for i, is := range all {
		text += fmt.Sprintf("\n              node %d:", i)
		for _, name := range []string{
			"role", "master_host", "master_link_status", "master_sync_in_progress", "slave_priority", "master_replid",
			"master_repl_offset", "master_failover_state", "connected_slaves", "cell_repl_error",
		} {
			if value := is[name]; value != "" {
				text += " " + name + "=" + value
			}
		}
	}
	return text
}

// contents returns all keys of a node, and the instant of its clock.
func contents(n *inproc.Node) (all map[string]entry.Entry, now limit.Instant) {
	handle := n.Keyspace().NewHandle()
	defer handle.Close()
	return n.State(), handle.Refresh()
}

// differ returns the first difference of the keys of two nodes that expire after an instant.
func differ(a, b map[string]entry.Entry, beyond limit.Instant) string {
	for _, side := range []struct {
		name     string
		one, two map[string]entry.Entry
	}{{"the second", a, b}, {"the first", b, a}} {
		for key, x := range side.one {
			y, ok := side.two[key]
			switch {
			case ends(key, x) <= beyond:
			case !ok:
				return fmt.Sprintf("%s lacks %s: %v", side.name, key, x)
			case x.Expiry != y.Expiry || x.Kind != y.Kind || !bytes.Equal(plain(x), plain(y)):
				return fmt.Sprintf("%s is %v and %v", key, x, y)
			}
		}
	}
	return ""
}

// plain returns the value of a key in a form in which equal states are equal. A LOG that gave units back
// may have other totals, and other bytes where it has no entries, than one to which the change was applied.
func plain(e entry.Entry) []byte {
	state, _, _ := entry.Parts(&e)
	if !state.Kind.IsWindow() || state.Kind.WindowMode() != slidingwindow.Log {
		return e.Value
	}
	word := binary.LittleEndian.Uint64
	v := state.Value
	all, before, ring := bytes.Clone(v[:8]), word(v[8:]), v[24:]
	head, kept := binary.LittleEndian.Uint32(v[16:]), binary.LittleEndian.Uint32(v[20:])
	for i := range kept {
		at := ring[16*((head+i)%uint32(len(ring)/16)):]
		all = binary.LittleEndian.AppendUint64(append(all, at[:8]...), word(at[8:])-before)
		before = word(at[8:])
	}
	return append(all, e.Value[len(v):]...)
}

// ends returns when the value of a key is no longer valid. A policy's record that ends does not
// expire: its primary removes it some time later, and may lose the removal at a power failure.
func ends(key string, e entry.Entry) limit.Instant {
	record, ok := strings.CutPrefix(key, strconv.Itoa(keyspace.System)+"/")
	if !ok {
		return e.Expiry
	}
	is, err := policy.DecodeEntry([]byte(record), e.Value, policy.Bounds{})
	if err != nil {
		return e.Expiry
	}
	return min(e.Expiry, is.Until)
}

// glance compares nodes with the same offset, while nothing changes. A primary may have decisions
// that are not in its stream yet, because no reply waits for them: reservations of BLOCK.
func (s *Sim) glance(when string) {
	s.w.Settle()
	all := make([]map[string]string, len(s.nodes))
	for i := range s.nodes {
		if all[i] = s.role(i); all[i]["role"] == "master" && !s.flush(i, all[i]) {
			all[i] = nil
		}
	}
	s.w.Settle()
	for i, a := range all {
		if a != nil {
			all[i] = s.role(i)
		}
	}
	for i, a := range all {
		for j := i + 1; j < len(all); j++ {
			b := all[j]
			if a["role"] == "" || b["role"] == "" || a["master_replid"] != b["master_replid"] || a["master_repl_offset"] != b["master_repl_offset"] {
				continue
			}
			if a["slave_priority"] == "0" || b["slave_priority"] == "0" || a["master_sync_in_progress"] == "1" || b["master_sync_in_progress"] == "1" {
				continue
			}
			s.equal(i, j, when)
		}
	}
}

// flush makes a primary send everything that it has decided, and reports whether it has, at this
// instant.
func (s *Sim) flush(i int, is map[string]string) bool {
	if s.plan.Acks > 0 || is["master_failover_state"] != "no-failover" {
		return false
	}
	now := time.Now()
	return s.do(s.nodes[i], "SET", "flushed", "yes") == "+OK\r\n" && time.Now().Equal(now)
}

// equal compares two nodes.
func (s *Sim) equal(i, j int, when string) {
	s.checks++
	a, then := contents(s.nodes[i])
	b, now := contents(s.nodes[j])
	if text := differ(a, b, max(then, now).Add(time.Second)); text != "" {
		s.fail("equal", "nodes %d and %d differ %s: %s", i, j, when, text)
	}
}

// check checks all invariants while no client calls and the cluster is whole.
func (s *Sim) check() {
	now, _ := s.parts.all()
	s.lapse(now)
	primary := int(s.primary.Load())
	dump := s.do(s.nodes[primary], "RL.POLICY", "DUMP")
	for i, n := range s.nodes {
		if i == primary {
			continue
		}
		s.equal(primary, i, "at the end of a round")
		if got := s.do(n, "RL.POLICY", "DUMP"); withoutEnds(got) != withoutEnds(dump) {
			s.fail("equal", "policies of node %d: %s of the primary: %s", i, withoutEnds(got), withoutEnds(dump))
		}
	}
	s.verify(now)
	s.checks++
	q := s.queue.Load()
	var left []string
	for _, word := range strings.Split(s.do(s.leader(), "LRANGE", q.key, "0", "-1"), "\r\n") {
		if strings.HasPrefix(word, "e-") {
			left = append(left, word)
		}
	}
	if text := q.check(left); text != "" {
		s.fail("queue", "%s: %s", q.key, text)
	}
	s.deny(now)
	if !s.failed() && s.plan.Kept && s.rng.IntN(2) == 0 {
		s.again()
	}
}

// withoutEnds removes the length and the overrides that end, because the nodes' clocks differ.
func withoutEnds(dump string) string {
	var kept []string
	for _, text := range strings.Split(dump, "\n") {
		switch {
		case strings.HasPrefix(text, "$"):
		case strings.HasPrefix(text, "        expires:"):
			for len(kept) > 0 && strings.HasPrefix(kept[len(kept)-1], "        ") {
				kept = kept[:len(kept)-1]
			}
			kept = kept[:max(0, len(kept)-1)]
		case strings.TrimSpace(text) != "overrides:":
			kept = append(kept, text)
		}
	}
	return strings.Join(kept, "\n")
}

// verify reads the final state of parts and checks their histories with porcupine.
func (s *Sim) verify(all []*part) {
	for _, p := range all {
		call := s.order.next()
		out := s.look(s.leader(), p)
		p.note(0, input{kind: kindLook, limit: p.limit}, out, call, s.order.next())
		s.checks++
		if p.verdict() == porcupine.Illegal {
			s.fail("linearizable", "no order of the calls explains the replies: %v", p)
			return
		}
	}
}

// deny makes calls that are denied or only peek, and compares the state before and after.
func (s *Sim) deny(all []*part) {
	s.checks++
	before, then := contents(s.leader())
	for _, p := range all {
		switch p.topic {
		case topicWindow:
			s.do(s.leader(), "SW.ALLOW", p.keys[0], strconv.FormatInt(p.limit, 10), years, "1000", "FIXED")
			s.do(s.leader(), "SW.ALLOW", p.keys[0], strconv.FormatInt(p.limit, 10), years, "1", "FIXED", "PEEK")
		case topicMulti:
			s.do(s.leader(), "RL.MULTI", "2", p.keys[0], p.keys[1], "SW", "100", years, "0", "FIXED", "SW", strconv.FormatInt(p.limit, 10), years, "1000", "FIXED")
			s.do(s.leader(), "RL.MULTI", "2", p.keys[0], p.keys[1], "SW", "1000", years, "1", "FIXED", "SW", "1", years, "1000", "FIXED")
		case topicReserve:
			s.do(s.leader(), append(p.limiter(p.limit, beyond+1), "RESERVE", "another", "1")...)
			s.do(s.leader(), "RL.COMMIT", p.keys[0], "another", "1")
			s.do(s.leader(), "RL.CANCEL", p.keys[0], "another")
		case topicUse:
			s.do(s.leader(), "RL.USE", "use", p.keys[0], "1000")
		case topicPlaces:
			s.do(s.leader(), "CC.ACQUIRE", p.keys[0], "1", years, "one more", "PEEK")
		default:
		}
	}
	for _, r := range s.rates.all {
		s.do(s.leader(), r.command(100, false)...)
	}
	after, now := contents(s.leader())
	if text := differ(before, after, max(then, now)); text != "" {
		s.fail("denied", "calls that are denied have changed something: %s", text)
	}
}

// again restarts a node from its files, and compares the state.
func (s *Sim) again() {
	i := s.rng.IntN(len(s.nodes))
	is := s.role(i)
	s.w.Advance(2 * time.Second)
	before, then := contents(s.nodes[i])
	crash := s.rng.IntN(2) == 0
	s.events.add("node %d starts again: power %t", i, crash)
	options := []string{"--replicaof", ""}
	if is["role"] == "slave" {
		options[1] = is["master_host"] + " 6379"
		for j := range s.nodes {
			if j != i {
				s.w.Net.Part(s.nodes[i].Host, s.nodes[j].Host)
			}
		}
	}
	s.die(i, crash && (s.plan.Always || strings.Contains(strings.Join(s.plan.Options, " "), "everysec")))
	s.nodes[i].Restart(options...)
	s.dead[i] = false
	s.w.Settle()
	after, now := contents(s.nodes[i])
	s.checks++
	if text := differ(before, after, max(then, now).Add(time.Second)); text != "" {
		s.fail("restart", "node %d has another state from its files: %s", i, text)
	}
	s.join()
	s.converge("after a restart")
}

// finish checks everything that was ever acknowledged, and the bounds.
func (s *Sim) finish() {
	now, past := s.parts.all()
	s.verify(append(now, past...))
	for _, r := range s.rates.all {
		s.checks++
		if text := tooMany(r.all, rateLimit, rateEach, r.times, s.ahead); text != "" {
			s.fail("bound", "%s: %s", r.key, text)
		}
	}
}
