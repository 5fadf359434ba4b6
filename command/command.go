package command

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/stats"
)

// AllCategories returns the categories of the command: its own, and those that Redis derives from
// flags (setImplicitACLCategories). A command with FlagModule has no categories, as in Redis with
// the module redis-cell.
func (c *Command) AllCategories() Category {
	if c.Flags&FlagModule != 0 {
		return 0
	}
	cats := c.Categories
	for _, implied := range []struct {
		flag Flag
		cats Category
	}{
		{FlagWrite, CatWrite},
		{FlagReadonly, CatRead},
		{FlagAdmin, CatAdmin | CatDangerous},
		{FlagPubSub, CatPubSub},
		{FlagFast, CatFast},
		{FlagBlocking, CatBlocking},
	} {
		if c.Flags&implied.flag != 0 {
			cats |= implied.cats
		}
	}
	if c.Categories&CatScripting != 0 {
		cats &^= CatRead // permission to read does not include permission to run scripts
	}
	if cats&CatFast == 0 {
		cats |= CatSlow
	}
	return cats
}

// With adds the flags f to commands and to their subcommands, and returns commands.
func With(f Flag, commands ...*Command) []*Command {
	for _, c := range commands {
		c.Flags |= f
		With(f, c.Sub...)
	}
	return commands
}

// OnlyFails reports whether every call of the command fails: the command exists only to tell
// callers why it is not available.
func (c *Command) OnlyFails() bool { return c.Run != nil && c.Reply == "an error" }

// AlwaysEmpty reports whether the command always replies with an empty result, because the server
// has no feature whose state the command could report.
func (c *Command) AlwaysEmpty() bool { return c.Run != nil && strings.HasPrefix(c.Reply, "an empty ") }

// NeedsMemory reports whether the command keeps a transaction or script from beginning when memory
// is full. Commands of limiters do not: they work when memory is full, except for new keys.
func (c *Command) NeedsMemory() bool {
	return c.Flags&FlagDenyOOM != 0 && c.Categories&CatRateLimit == 0
}

// ArityOK reports whether n arguments, including the name of the command, match the arity.
func (c *Command) ArityOK(n int) bool {
	return n == c.Arity || (c.Arity < 0 && n >= -c.Arity)
}

// check panics if the entry is incomplete or contradicts itself. The table calls it at start-up.
func (c *Command) check() {
	switch {
	case c.Name == "" || c.Summary == "" || c.Since == "" || c.Group == "":
		panic(fmt.Sprintf("commands: entry %q lacks a name, summary, since or group", c.Name))
	case c.Arity == 0:
		panic(fmt.Sprintf("commands: entry %q has no arity", c.Name))
	case c.Run == nil && c.Sub == nil:
		panic(fmt.Sprintf("commands: entry %q does nothing", c.Name))
	case c.Flags&FlagLocal != 0 && (!c.Keys.None() || c.Categories&CatKeyspace != 0 || c.Parse != nil):
		panic(fmt.Sprintf("commands: entry %q is said to reach no key and has some", c.Name))
	case c.Flags&FlagLocal != 0 && c.RunOn != nil:
		panic(fmt.Sprintf("commands: entry %q is said to reach no key and needs a store with keys", c.Name))
	case (c.Parse == nil) != (c.Answer == nil):
		panic(fmt.Sprintf("commands: entry %q has one of Parse and Answer", c.Name))
	case c.Run != nil && c.Complexity == "":
		panic(fmt.Sprintf("commands: entry %q lacks its complexity", c.Name))
	}
}

// Subcommand returns the subcommand of c with the given name, in letters of any case, or nil if
// there is none.
func (c *Command) Subcommand(name []byte) *Command {
	for _, sub := range c.Sub {
		if EqualFold(name, sub.Name[len(c.Name)+1:]) {
			return sub
		}
	}
	return nil
}

// SpansKeyspace reports whether calls of the command may read or write keys that are not among their
// arguments.
func (c *Command) SpansKeyspace() bool {
	return c.Categories&CatKeyspace != 0 && c.Keys.None() || c.Keys.Derived != nil || c.Flags&FlagAllShards != 0
}

// HasLongKey reports whether a key of a call with args is longer than [MaxKey], or a derived key is so
// long that a key which belongs to it may be longer. It is rarely called: only for calls of more than
// MaxKey bytes.
func (c *Command) HasLongKey(args [][]byte) bool {
	for i, end, step := c.Keys.Range(args); i < end; i += step {
		if len(args[i]) > MaxKey {
			return true
		}
	}
	d := c.Keys.Derived
	for at := c.Keys.FirstDerived(args); at > 0; at = d.After(args, at) {
		if len(d.Append(nil, args, at)) > MaxKey-d.Extra {
			return true
		}
	}
	return false
}

// RepliesValues reports whether the command replies with stored values and changes nothing.
func (c *Command) RepliesValues() bool {
	return c.Flags&FlagReadonly != 0 && c.Flags&(FlagLinear|FlagValues) != 0
}

// Subscribes reports whether the command starts or ends subscriptions.
func (c *Command) Subscribes() bool { return c.Group == "pubsub" && c.Flags&FlagNoScript != 0 }

// ListenersMay reports whether a RESP2 client with subscriptions may run the command.
func (c *Command) ListenersMay() bool { return c.Flags&FlagSubscriber != 0 }

// RunsScript reports whether the command runs a script: EVAL, EVALSHA or one of their variants.
func (c *Command) RunsScript() bool { return c.Group == "scripting" && c.Keys.Count > 0 }

// classOf returns the class of c for the statistics of durations: how long calls are expected to
// take.
func classOf(c *Command) stats.Class {
	switch {
	case c.RunsScript():
		return stats.Script
	case c.Flags&FlagFast != 0:
		return stats.Fast
	}
	return stats.Slow
}

// Shown returns args, the arguments of a call, with secrets masked. It does not change args.
func (c *Command) Shown(args [][]byte) [][]byte { return stats.Shown(c.Secrets, args) }
