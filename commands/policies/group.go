package policies

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
)

// Group returns the commands of this package.
func Group() command.Group {
	return command.Group{
		Commands: []*command.Command{
			policyContainer(), overrideContainer(),
			urgent(about(2, entry("rl.boost", 6, change, "policy pattern factor EX duration",
				"Multiplies the limits of some keys for a time.", "OK", boost))),
			urgent(about(2, entry("rl.unboost", 3, change, "policy pattern", "Ends a boost.", ifThere, end(boostKind)))),
			urgent(about(2, entry("rl.block", -3, change, "policy pattern [EX duration] [REASON text]",
				"Denies all calls for some keys, for a time or for good.", "OK", block))),
			urgent(about(2, entry("rl.unblock", 3, change, "policy pattern", "Ends a block.", ifThere, end(blockKind)))),
			urgent(about(2, entry("rl.exempt", -3, change, "policy pattern [EX duration] [REASON text]",
				"Allows all calls for some keys, for a time or for good, and counts them.", "OK", exempt))),
			urgent(about(2, entry("rl.unexempt", 3, change, "policy pattern", "Ends an exemption.", ifThere, end(exemptKind)))),
			sized(entry("rl.changes", -1, show, "[COUNT count] [POLICY name] [PATTERN pattern]", "Lists the latest changes of policies, the newest first.",
				"an array of maps: id, time, user, address, command, policy, pattern, before, after", changes), changesSize),
		},
		Server: func(s *command.Server, _ command.Slot) (any, command.Hooks) {
			k := &keeper{server: s}
			return k, command.Hooks{Decay: func(*command.Worker) { k.tidy() }}
		},
		Figures: figures(),
	}
}

const ifThere = "1 if there was one, 0 if not"

// Flags of the commands.
const (
	// change is for commands that change policies. They have Writes in place of FlagWrite,
	// because a user with the permission to write keys must not be able to change limits.
	change = command.FlagAdmin | command.FlagNoScript | command.FlagNoMulti | command.FlagAudit
	show   = command.FlagNoScript | command.FlagNoMulti
)

// entry returns the entry of a command that runs in the background.
func entry(name string, arity int, f command.Flag, syntax, summary, reply string, run func(*command.Call)) *command.Command {
	c := &command.Command{
		Name: name, Arity: arity, Flags: f, Categories: command.CatPolicy, Group: "policy", Summary: summary, Syntax: syntax,
		Since: "1.0.0", Complexity: "O(N) of the entries that it changes or shows", Reply: reply, Run: run,
		WordWork: command.MaxLoopWork + 1, // so that a call with any number of arguments leaves the loop
	}
	if f&command.FlagAdmin != 0 {
		c.Writes = func(*command.Call, *command.Command, [][]byte) bool { return true }
	}
	return c
}

// urgent marks a command that operators need during incidents: it does not wait for long-running
// changes.
func urgent(c *command.Command) *command.Command {
	c.Urgent = true
	return c
}

// about marks a command about the keys of a pattern, which is the argument with that index.
func about(pattern int, c *command.Command) *command.Command {
	c.Pattern = pattern
	return c
}

// sized marks a command whose reply may be long, so that it waits for memory.
func sized(c *command.Command, size func(cl *command.Client, st env.Store, cmd *command.Command, args [][]byte) int) *command.Command {
	c.ReplySize = size
	return c
}

func policyContainer() *command.Command {
	sub := func(name string, arity int, f command.Flag, syntax, summary, reply string, run func(*command.Call)) *command.Command {
		return entry("rl.policy|"+name, arity, f, syntax, summary, reply, run)
	}
	reload := sub("reload", 2, change, "", "Reads the policy file again.", "how many policies and overrides have changed", reload)
	reload.Files = true
	return &command.Command{
		Name: "rl.policy", Arity: -2, Categories: command.CatPolicy, Group: "policy",
		Summary: "A container for commands about policies.", Since: "1.0.0",
		Sub: []*command.Command{
			sub("set", -5, change, "name [MS] [SHADOW] [COMMENT text] LIMITS clause [clause ...]",
				"Sets the limits of a policy.", "OK", setPolicy),
			sub("get", 3, show, "name", "Shows a policy, what is set for a time, and what it has counted.", "a map", getPolicy),
			sub("list", 2, show, "", "Lists the names of all policies.", "an array of names", listPolicies),
			sub("del", 3, change, "name", "Deletes a policy with all that belongs to it.", ifThere, deletePolicy),
			sub("try", -4, change, "name <OFF | LIMITS clause [clause ...]>",
				"Has a candidate decide beside the policy, or ends that.", "OK", tryPolicy),
			sized(sub("dump", -2, show, "[FILE]", "Returns all policies and overrides as YAML, or those that the policy file defines.", "a text", dump), dumpSize),
			sized(sub("diff", 3, show, "yaml", "Says what APPLY would change.", "a text, empty for nothing", diff), dumpSize),
			sub("apply", 3, change, "yaml", "Makes policies and overrides those of a YAML text, or changes nothing.",
				"how many have changed", apply),
			reload,
		},
	}
}

func overrideContainer() *command.Command {
	sub := func(name string, arity int, f command.Flag, syntax, summary, reply string, run func(*command.Call)) *command.Command {
		return entry("rl.override|"+name, arity, f, syntax, summary, reply, run)
	}
	return &command.Command{
		Name: "rl.override", Arity: -2, Categories: command.CatPolicy, Group: "policy",
		Summary: "A container for commands about overrides.", Since: "1.0.0",
		Sub: []*command.Command{
			about(3, sub("set", -6, change, "policy pattern [EX duration] [COMMENT text] LIMITS clause [clause ...]",
				"Sets the limits of some keys of a policy.", "OK", setOverride)),
			about(3, sub("del", 4, change, "policy pattern", "Deletes an override.", ifThere, deleteOverride)),
			sized(sub("list", 3, show, "policy", "Lists the overrides of a policy.",
				"an array of maps: pattern, limits, ms, comment, ttl, file", listOverrides), listSize),
		},
	}
}
