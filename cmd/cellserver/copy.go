package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/remote/records"
	"github.com/cellserver/cellserver/remote/states"
)

const copyUsage = "usage: cellserver copy DIR valkey://host:port (or back: copy valkey://host:port DIR)" +
	" [--match pattern] [--db n] [--store-prefix cs:] [--replace] [--without-policies] [--dry-run]"

// copying copies the states of limiters, and the policies, between the directory of a stopped server and a store. The
// states are the same bytes on both sides, so their instants do not change.
type copying struct {
	migration
	address string
	prefix  string
	replace bool
	toStore bool
	without bool           // whether only the states are copied, and no policies
	kinds   map[string]int // number of copied states by kind
	bar     *progressbar.ProgressBar
}

// flags returns the options of the tool, which are stored in c.
func (c *copying) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("copy", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.match, "match", "*", "")
	flags.IntVar(&c.db, "db", 0, "")
	flags.StringVar(&c.prefix, "store-prefix", "cs:", "")
	flags.BoolVar(&c.replace, "replace", false, "")
	flags.BoolVar(&c.without, "without-policies", false, "")
	flags.BoolVar(&c.dryRun, "dry-run", false, "")
	return flags
}

func parseCopy(args []string, w io.Writer) (*copying, error) {
	c := &copying{migration: migration{w: w, skipped: map[string]int{}}, kinds: map[string]int{}}
	names, err := parseMixed(c.flags(), args)
	if err != nil {
		return nil, fmt.Errorf("copy: %w\n%s", err, copyUsage)
	}
	if len(names) != 2 || isURL(names[0]) == isURL(names[1]) {
		return nil, errors.New(copyUsage)
	}
	if c.db < 0 || c.db >= databases {
		return nil, fmt.Errorf("copy: only databases 0 to %d exist", databases-1)
	}
	c.toStore = isURL(names[1])
	if !c.toStore {
		slices.Reverse(names)
	}
	c.address = names[1]
	c.dir, err = filepath.Abs(names[0])
	return c, err
}

func isURL(s string) bool { return strings.Contains(s, "://") }

func copyStates(args []string, w io.Writer) error {
	c, err := parseCopy(args, w)
	if err != nil {
		return err
	}
	if c.toStore && !persistence.Exists(persistence.OS{}, c.dir) {
		return fmt.Errorf("%s contains no state of a cellserver", c.dir)
	}
	s, err := openStore(c.address, c.prefix)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer s.engine.Close()
	dir, ks, err := c.open()
	if err != nil {
		return err
	}
	defer ks.Close()
	var policies *policyCopy
	if err = c.checkClocks(ks, s); err == nil {
		policies, err = c.policies(ks, s)
	}
	switch {
	case err != nil:
		return errors.Join(err, closeDir(dir))
	case c.toStore:
		err = c.write(ks, s, policies.from.Table())
	default:
		err = c.read(ks, s)
	}
	if err == nil && !c.without && !c.dryRun {
		err = policies.run()
	}
	if err == nil && !c.toStore && !c.dryRun {
		_, err = dir.Rewrite(ks)
	}
	c.conclude(err)
	c.concludePolicies(policies, err)
	if c.toStore {
		c.leave(ks)
	}
	return errors.Join(err, closeDir(dir))
}

// closeDir closes dir, which is nil for a dry run on a directory that does not exist.
func closeDir(dir *persistence.Dir) error {
	if dir == nil {
		return nil
	}
	return dir.Close()
}

// policies reads the policies of both sides. The error says that they cannot be copied, before anything is.
func (c *copying) policies(ks *keyspace.Keyspace, s *stateStore) (*policyCopy, error) {
	p := &policyCopy{replace: c.replace}
	var err error
	if p.from, err = policiesOfDir(ks); c.without {
		return p, nil // the policies are read only to find the keys that belong to policies
	}
	if err == nil {
		p.to, err = policiesOfStore(s.engine, s.engine.Now)
	}
	if !c.toStore {
		p.from, p.to = p.to, p.from
	}
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, fmt.Errorf("copy: %w", err)
	}
	return p, nil
}

// concludePolicies prints which policies were copied, and which were not. err is the error that has ended the copy.
func (c *copying) concludePolicies(p *policyCopy, err error) {
	switch {
	case c.without:
		fmt.Fprintln(c.w, "not copied: policies (--without-policies)")
	case err != nil:
		fmt.Fprintln(c.w, "policies may not be copied, or only some of them: run the command again")
	case c.dryRun:
		p.report(c.w, "would be copied")
	default:
		p.report(c.w, "copied")
	}
}

// checkClocks returns an error if the instants of the states would mean another time of day in the
// store, and warns about a small difference.
func (c *copying) checkClocks(ks *keyspace.Keyspace, s *stateStore) error {
	now := ks.Clock().Now()
	if off := ks.Clock().Civil(now).Sub(now); off != 0 {
		return fmt.Errorf("copy: the instants of %s are %s off the time of day, which was set while its server ran: "+
			"they would end at another time in the store", c.dir, off.Round(time.Second))
	}
	if apart := s.engine.Now().Sub(now); apart > time.Second || apart < -time.Second {
		fmt.Fprintf(c.w, "the clock of the store is %s off this machine's: limits end as much earlier or later\n", apart.Round(time.Millisecond))
	}
	return nil
}

// write copies the states of the keyspace into the store, except for those that unwanted gives a
// reason for. table has the policies of the directory. It stops after the first step with an error.
func (c *copying) write(ks *keyspace.Keyspace, s *stateStore, table *policy.Table) error {
	v := ks.NewHandle()
	defer v.Close()
	c.total = int64(v.Len(c.db))
	c.begin()
	for cursor := uint64(0); ; {
		var step []moving
		v.Refresh()
		cursor = v.ScanEntries(c.db, cursor, copyStep, func(key []byte, e entry.Entry) {
			e, _ = entry.Plain(&e) // a store keeps fewer of the calls that a limiter remembers, so these are left out
			e.Value = slices.Clone(e.Value)
			step = append(step, moving{key: slices.Clone(key), entry: e})
		})
		for i := range step {
			if m := &step[i]; !c.joint(v, table, m) {
				m.why = c.unwanted(m.key, &m.entry)
			}
		}
		err := together(len(step), func(i int) error {
			if step[i].why != "" || step[i].part {
				return nil
			}
			return c.put(s, &step[i])
		})
		for i := range step {
			c.count(&step[i])
		}
		if err != nil || cursor == 0 {
			return err
		}
	}
}

// moving is one key that is being copied.
type moving struct {
	key   []byte
	entry entry.Entry
	done  bool   // whether the key was processed
	why   string // the reason why the key was skipped, or ""
	part  bool   // whether another key represents the state: see joint
}

// unwanted returns the reason for skipping a key whatever the other side contains; "" if there is
// none. A plain string that is a number may be a counter of INCREX.
func (c *copying) unwanted(key []byte, e *entry.Entry) string {
	k := e.Kind
	switch {
	case bytes.HasPrefix(key, []byte(records.KeyPrefix)):
		return "its key is one that servers use for policies in a store"
	case !glob.Match([]byte(c.match), key):
		return "not of the pattern"
	case k == entry.String && counter.Check(e.Value) == nil:
		return ""
	case !k.IsLimiter() && k != entry.Ban:
		return "not the state of a limiter: " + k.Type()
	}
	return ""
}

// put writes the state of m into the store, unless [copying.standing] returns a reason to keep the
// store's value, which becomes m.why. A dry run writes nothing. m.done says that the state was
// processed.
func (c *copying) put(s *stateStore, m *moving) error {
	old, err := s.get(m.key)
	for err == nil {
		m.why = c.standing(old, m.entry, s.engine.Now())
		if m.why != "" || c.dryRun {
			m.done = true
			return nil
		}
		var w remote.Write
		if w, err = s.packer.Pack(m.key, old, remote.State{Entry: m.entry, Stamp: s.engine.Now()}); err != nil {
			return err
		}
		var applied bool
		if applied, old, err = s.swap(w); applied {
			m.done = true
			return nil
		}
	}
	return err
}

// standing returns the reason why raw, the store's value of a key, is kept; "" if e replaces it.
// now is the present instant of the store.
func (c *copying) standing(raw []byte, e entry.Entry, now limit.Instant) string {
	there, err := remote.Unpack(raw)
	switch {
	case err != nil:
		return "the store has something else at this key"
	case there.Entry.Expiry <= now:
		return ""
	case same(there.Entry, e):
		return isThere
	case there.Stamp > c.last && !c.replace:
		return "the store has a newer state"
	}
	return ""
}

func same(a, b entry.Entry) bool {
	return a.Kind == b.Kind && a.Expiry == b.Expiry && slices.Equal(a.Value, b.Value)
}

// read copies the states of the store into the keyspace, except for those that unwanted or kept
// gives a reason for. A dry run only counts them.
func (c *copying) read(ks *keyspace.Keyspace, s *stateStore) error {
	v := ks.NewHandle()
	defer v.Close()
	c.total = -1 // the total is unknown, since counting takes as long as copying
	c.begin()
	for cursor := uint64(0); ; {
		next, found, err := s.scan(cursor)
		if err != nil {
			return err
		}
		for _, f := range found {
			if bytes.HasPrefix(f.Key, []byte(records.KeyPrefix)) {
				continue // these keys have the policies
			}
			state, err := remote.Unpack(f.Value)
			plain, _ := entry.Plain(&state.Entry) // calls that the limiter remembers are left out, as in the other direction
			m := moving{key: f.Key, entry: plain, done: true}
			switch {
			case err != nil:
				m.why = "not the state of a limiter"
			case state.Joint():
				if err := c.readJoint(ks, v, &m, state.Stamp); err != nil {
					return err
				}
				c.count(&m)
				continue
			}
			if m.why == "" {
				m.why = c.unwanted(f.Key, &state.Entry)
			}
			if m.why == "" {
				m.why = c.kept(v, &m, state.Stamp)
			}
			if m.why == "" && !c.dryRun {
				if err := ks.Restore(c.db, m.key, m.entry); err != nil {
					return err
				}
			}
			c.count(&m)
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// kept returns the reason why the directory's value of the key of m is kept; "" if the entry of m
// replaces it. stamp is the time at which the store's value was written. The time at which the
// directory's value was written is not known; c.latest is an upper bound.
func (c *copying) kept(v *keyspace.Handle, m *moving, stamp limit.Instant) string {
	there, found := v.Load(c.db, m.key)
	switch {
	case m.entry.Expiry <= v.Refresh():
		return "over"
	case len(m.key) > longestKey:
		return "its key is too long"
	case !found:
		return ""
	case same(there, m.entry):
		return isThere
	case stamp <= c.latest && !c.replace:
		return mayBeNewer
	}
	return ""
}

// These are reasons for keeping a state.
const (
	isThere    = "is there already"
	mayBeNewer = "the directory may have a newer state"
)

// begin draws a progress bar if the output is a terminal.
func (c *copying) begin() {
	if isTerminal(c.w) {
		c.bar = progressbar.NewOptions64(c.total, progressbar.OptionSetWriter(c.w), progressbar.OptionSetWidth(40),
			progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription("copying"))
	}
}

// pass counts a key that is skipped for the reason why.
func (c *copying) pass(why string) {
	c.seen++
	c.skipped[why]++
	c.step()
}

// count counts m as skipped if it has a reason, or as copied if it was processed. If the copy
// failed before m, it counts nothing.
func (c *copying) count(m *moving) {
	switch {
	case m.part:
		c.seen++
		c.kinds["further limits of policies, which are parts of these"]++
		c.step()
	case m.why != "":
		c.pass(m.why)
	case m.done:
		c.seen++
		c.copied++
		c.kinds[family(m.entry.Kind)]++
		c.step()
	}
}

func (c *copying) step() {
	if c.bar != nil {
		_ = c.bar.Add(1) // an error of the terminal is not a fault of the copy
	}
}

// family returns the usual name for the states of a kind.
func family(k entry.Kind) string {
	switch {
	case k == states.Joint:
		return "policies and keys (RL.USE)"
	case k == entry.Cell:
		return "CL.THROTTLE"
	case k == entry.String:
		return "numbers (INCREX)"
	case k.IsWindow():
		return "SW.ALLOW " + k.Encoding()
	case k.IsBucket():
		return "TB.ACQUIRE " + k.Encoding()
	case k == entry.Ban:
		return "bans"
	}
	return "CC.ACQUIRE " + k.Encoding()
}

// conclude prints what was copied and what was not. err is the error that has ended the copy, if
// there is one.
func (c *copying) conclude(err error) {
	if c.bar != nil {
		_ = c.bar.Finish() // an error of the terminal is not a fault of the copy
	}
	verb := "copied"
	if err != nil && c.toStore {
		verb = "copied before it failed"
	} else if err != nil {
		verb = "read and not kept"
	}
	c.report(verb)
	var names []string
	for name := range c.kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(c.w, "%d of %s\n", c.kinds[name], name)
	}
}

// leave prints which parts of the directory are not copied, in addition to skipped keys.
func (c *copying) leave(ks *keyspace.Keyspace) {
	all := ks.Stats()
	for db, stats := range all.Databases {
		if db != c.db && stats.Keys > 0 {
			fmt.Fprintf(c.w, "not copied: %d keys of database %d (--db %d)\n", stats.Keys, db, db)
		}
	}
}
