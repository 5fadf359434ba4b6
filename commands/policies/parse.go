package policies

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/command/policystore"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/resp"
)

// words has the parsed options of a command that sets an entry.
type words struct {
	millis bool
	flags  policy.Flags
	text   []byte // the argument of COMMENT or REASON; nil without that option
	expiry []byte // the argument of EX; nil without that option
	limits [][]byte
	// classes has the arguments of CLASS.
	classes     []policy.Class
	force, sync bool
}

// options says which options a command accepts.
type options struct {
	millis, flags, expires, limits bool
	servers                        bool   // whether FORCE and SYNC are accepted
	text                           string // the name of the text option: "COMMENT" or "REASON"; "" if there is none
}

// parse parses args, which are options in any order, into w. o says which options are accepted. The
// option LIMITS takes all arguments after it. The error is "" on success.
func (w *words) parse(args [][]byte, o options) resp.Error {
	for len(args) > 0 {
		word, rest := args[0], args[1:]
		err := resp.Error("")
		switch {
		case o.millis && arg.IsWord(word, "MS"):
			err = arg.Once(word, &w.millis)
		case o.flags && w.flagOf(word) != nil:
			err = arg.Once(word, w.flagOf(word))
		case o.flags && arg.IsWord(word, "KEY") && !w.flags.Key.IP:
			rest, err = w.parseKey(rest)
		case o.flags && arg.IsWord(word, "NOTIFY") && len(rest) > 0 && w.flags.Notify == 0:
			err, rest = w.parseNotify(rest[0]), rest[1:]
		case o.flags && arg.IsWord(word, "CLASS") && len(rest) > 2 && arg.IsWord(rest[1], "KEEP"):
			err, rest = w.parseClass(rest[0], rest[2]), rest[3:]
		case o.servers && arg.IsWord(word, "FORCE"):
			err = arg.Once(word, &w.force)
		case o.servers && arg.IsWord(word, "SYNC"):
			err = arg.Once(word, &w.sync)
		case o.text != "" && arg.IsWord(word, o.text) && len(rest) > 0 && w.text == nil:
			w.text, rest = rest[0], rest[1:]
		case o.expires && arg.IsWord(word, "EX") && len(rest) > 0 && w.expiry == nil:
			w.expiry, rest = rest[0], rest[1:]
		case o.limits && arg.IsWord(word, "LIMITS"):
			w.limits, rest = rest, nil
		case o.expires && w.expiry == nil && arg.StartsNumber(word):
			err = resp.SyntaxNear(word) + ": a duration stands behind EX"
		case o.limits && clause.Word(word) != clause.None:
			err = resp.SyntaxNear(word) + ": clauses stand behind LIMITS"
		default:
			err = resp.SyntaxNear(word)
		}
		if err != "" {
			return err
		}
		args = rest
	}
	if o.limits && w.limits == nil {
		return errNoLimits
	}
	var err error
	if w.flags.Classes, err = policy.ClassText(w.classes); err != nil {
		return resp.Error("ERR " + err.Error())
	}
	return ""
}

// parseNotify parses text, the mark of NOTIFY, into w.
func (w *words) parseNotify(text []byte) resp.Error {
	percent, err := policy.ParseMark(string(text))
	if err != nil {
		return resp.Argument(resp.ErrNotInteger, "NOTIFY", text, "a share from 1% to 100%")
	}
	w.flags.Notify = percent
	return ""
}

// parseClass adds the class called name. text is the share of the limit that calls of this class
// leave for others.
func (w *words) parseClass(name, text []byte) resp.Error {
	if policy.CheckName(name) != nil {
		return resp.Error("ERR " + policy.ErrClass.Error())
	}
	keep, err := policy.ParseShare(string(text))
	if err != nil {
		return resp.Argument(resp.ErrNotInteger, "KEEP", text, "a share from 0% to 100%")
	}
	w.classes = append(w.classes, policy.Class{Name: string(name), Keep: keep})
	return ""
}

// flagOf returns the field of the flag called word; nil if there is no such flag.
func (w *words) flagOf(word []byte) *bool {
	for _, s := range policy.Switches {
		if arg.IsWord(word, s.Word) {
			return s.Of(&w.flags)
		}
	}
	return nil
}

// parseKey parses the arguments of KEY at the beginning of args into w, and returns the other arguments.
func (w *words) parseKey(args [][]byte) (rest [][]byte, err resp.Error) {
	n := min(len(args), 3)
	text := bytes.Join(args[:n], []byte{' '})
	form, failed := policy.ParseKeyForm(string(text))
	if failed != nil {
		return nil, resp.Argument("ERR value is no form of keys", "KEY", text, "IP and the lengths of networks for IPv4 and IPv6, such as IP 32 56")
	}
	w.flags.Key = form
	return args[n:], ""
}

const errNoLimits resp.Error = "ERR LIMITS and its clauses are missing"

// until returns the instant at which the entry expires according to EX, or limit.MaxInstant, which
// stands for never, without EX. The error is "" on success.
func (w *words) until(c *command.Call) (limit.Instant, resp.Error) {
	if w.expiry == nil {
		return limit.MaxInstant, ""
	}
	n, ok := arg.Duration(w.expiry, time.Millisecond)
	if seconds, plain := arg.Int(w.expiry); plain {
		n, ok = limit.SatMul(seconds, 1000), true
	}
	if !ok {
		return 0, c.Usage(resp.Argument(resp.ErrNotInteger, "EX", w.expiry, "a duration such as 60, 60s, 1m, 12h or 1d"))
	}
	at, ok := command.ExpiryInstant(c.Store, n, time.Millisecond, false)
	if !ok || n <= 0 {
		return 0, resp.Error("ERR invalid expire time in '" + c.Cmd.Name + "' command")
	}
	return min(at, limit.MaxInstant-1), ""
}

// bounds returns the bounds for the clauses of policies, from the settings of the server.
func bounds(c *command.Call) policy.Bounds {
	l := c.Server.Limits()
	return policy.Bounds{LogMaxEntries: l.LogMaxEntries, MaxMembers: l.MaxMembers}
}

// author returns the author of the change that the running command makes: the user, the address and
// the command.
func author(c *command.Call) registry.Author {
	return registry.Author{User: c.Client.UserName(), Address: c.Client.Addr(), What: strings.ToUpper(strings.ReplaceAll(c.Cmd.Name, "|", " "))}
}

// update makes the edits that plan returns, and reports whether it has succeeded. If not, it has
// replied with the error. It waits for the confirmation of an urgent command: see confirmed.
func update(c *command.Call, plan func(b *policy.Builder, now limit.Instant) ([]registry.Edit, error)) bool {
	return updateBy(c, author(c), plan)
}

// updateBy does what update does, in the name of the author by.
func updateBy(c *command.Call, by registry.Author, plan func(b *policy.Builder, now limit.Instant) ([]registry.Edit, error)) bool {
	confirm, done := edit(c, by, plan)
	return done && confirmed(c, confirm)
}

// edit makes the edits that plan returns, in the name of the author by. done reports whether it has succeeded. If not,
// it has replied with the error. confirm is for confirmed.
func edit(
	c *command.Call, by registry.Author, plan func(b *policy.Builder, now limit.Instant) ([]registry.Edit, error),
) (confirm func() error, done bool) {
	r := c.Server.Options.Policies
	if r == nil {
		c.Fail(errNone)
		return nil, false
	}
	var err error
	by.Urgent = c.Cmd.Urgent
	confirm = changing(c, func(st registry.Store) { err = r.Update(st, by, plan) })
	if err != nil {
		fail(c, err)
	}
	return confirm, err == nil
}

// confirmed waits, if the running command is urgent, until a replica of the store has its change, and reports whether one
// has. If not, it has replied with the error. Other commands run meanwhile. confirm is nil without the option store.
func confirmed(c *command.Call, confirm func() error) bool {
	if confirm == nil || !c.Cmd.Urgent {
		return true
	}
	var err error
	c.Server.Host.Work.Aside(c, func() { err = confirm() })
	if err != nil {
		fail(c, err)
	}
	return err == nil
}

// shown returns the Run function of a command that shows policies, by run. If the store that has their records was not
// read yet, it fails.
func shown(run func(c *command.Call)) func(c *command.Call) {
	return func(c *command.Call) {
		if unread := c.Server.Options.PoliciesUnread; unread != nil {
			if err := unread(); err != nil {
				c.Fail(command.StoreError(err))
				return
			}
		}
		run(c)
	}
}

const errNone resp.Error = "ERR this server keeps no policies"

// fail replies with err, an error of the registry.
func fail(c *command.Call, err error) {
	var answer resp.Error
	var file *registry.FileError
	var pattern *registry.PatternError
	switch {
	case errors.As(err, &answer):
	case errors.As(err, &file), errors.As(err, &pattern), registry.IsRefusal(err):
		answer = resp.Error("ERR " + err.Error())
	case errors.Is(err, registry.ErrUnconfirmed):
		answer = resp.ErrUnconfirmed
	case errors.Is(err, limit.ErrNotKept) && c.Server.Options.Persistence != nil:
		answer = command.Misconf(c.Server.Options.Persistence.Fault())
	default:
		answer = command.StoreError(err)
	}
	c.Fail(answer)
}

// outside runs f, which may take long or wait. If the command runs in the background, it leaves the
// store while f runs, so that other goroutines can stop the world meanwhile. f may use only tables,
// texts and the clock, and may write the reply.
func outside(c *command.Call, f func()) { c.Server.Host.Work.Outside(c, f) }

// changing runs f as outside does. f changes policies in st, which has their records: the store of the running command,
// or the option store. confirm is for confirmed.
func changing(c *command.Call, f func(st registry.Store)) (confirm func() error) {
	if change := c.Server.Options.ChangePolicies; change != nil {
		outside(c, func() { confirm = change(f) })
		return confirm
	}
	st := c.Store.(policystore.Backing)
	if !c.Client.Background { // the command then runs on an event loop, inside the store
		f(policystore.Store(st))
		return nil
	}
	outside(c, func() { f(policystore.Left(st, c.Server)) })
	return nil
}

// setEntry sets the entry that make returns, for the policy that the running command names, and
// replies with OK or an error. main is the present entry of the policy itself, or nil if there is
// no such policy. The policy must exist, unless the new entry is the policy itself.
func setEntry(c *command.Call, make func(main *policy.Entry, now limit.Instant) (*policy.Entry, resp.Error)) {
	if putEntry(c, author(c), make) {
		c.OK()
	}
}

// putEntry does what setEntry does, in the name of the author by, but does not reply OK. It reports whether it has
// succeeded.
func putEntry(c *command.Call, by registry.Author, make func(main *policy.Entry, now limit.Instant) (*policy.Entry, resp.Error)) bool {
	name := c.Args[nameAt(c)]
	if err := policy.CheckName(name); err != nil {
		c.Fail(resp.Error("ERR " + err.Error()))
		return false
	}
	return updateBy(c, by, func(b *policy.Builder, now limit.Instant) ([]registry.Edit, error) {
		main := b.Get(policy.Main, string(name), "")
		e, err := make(main, now)
		if err != "" {
			return nil, err
		}
		if main == nil && e.Kind != policy.Main {
			return nil, command.NoPolicy(name)
		}
		if main != nil && e.Kind.HasPattern() {
			var err error
			if e.Pattern, err = main.Key.Pattern(e.Pattern); err != nil {
				return nil, err
			}
		}
		e.Policy, e.Since = string(name), now
		return []registry.Edit{registry.Set(e)}, nil
	})
}

// nameAt returns the index of the argument that is the name of a policy: 2 for a subcommand, and
// otherwise 1.
func nameAt(c *command.Call) int {
	if c.Cmd.Parent != nil {
		return 2
	}
	return 1
}

// deleteEntry deletes the entry of kind whose policy and pattern the running command names, and
// replies with 1 if there was one and with 0 if not.
func deleteEntry(c *command.Call, kind policy.Kind) {
	there, confirm, done := removeEntry(c, kind)
	if done && confirmed(c, confirm) {
		c.W.Int(elements.OneIf(there))
	}
}

// removeEntry deletes the entry of kind whose policy and pattern the running command names. there says that there
// was one. If done is false, the command has failed and the reply is an error. confirm is for confirmed.
func removeEntry(c *command.Call, kind policy.Kind) (there bool, confirm func() error, done bool) {
	at := nameAt(c)
	name, pattern := string(c.Args[at]), string(c.Args[at+1])
	confirm, done = edit(c, author(c), func(b *policy.Builder, _ limit.Instant) ([]registry.Edit, error) {
		e := b.Get(kind, name, pattern)
		if main := b.Get(policy.Main, name, ""); e == nil && main != nil {
			stored, err := main.Key.Pattern(pattern)
			if err != nil {
				return nil, err
			}
			e = b.Get(kind, name, stored)
		}
		if there = e != nil; !there {
			return nil, nil
		}
		return []registry.Edit{registry.Delete(e)}, nil
	})
	return there, confirm, done
}
