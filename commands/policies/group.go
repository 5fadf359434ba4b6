package policies

import (
	"github.com/cellserver/cellserver/command"
)

// Group returns the command group of RL.POLICY, RL.OVERRIDE and the other commands that change or
// show policies. Its Decay hook removes expired entries of policies.
func Group() command.Group {
	return command.Group{
		Commands: command.Entries(defaults(), append([]*command.Command{
			policyContainer(),
			overrideContainer(),
			{
				Name: "rl.boost", Arity: 6, Flags: change,
				Summary: "Multiplies the limits of some keys for a time.", Syntax: "policy pattern factor EX duration", Reply: "OK",
				Run: boost, Writes: always, Urgent: true, Disclosure: command.Disclosure{Change: "policy", Pattern: 2},
			},
			{
				Name: "rl.unboost", Arity: 3, Flags: change,
				Summary: "Ends a boost.", Syntax: "policy pattern", Reply: ifThere, Run: end(boostKind),
				Writes: always, Urgent: true, Disclosure: command.Disclosure{Change: "policy", Pattern: 2},
			},
			{
				Name: "rl.block", Arity: -3, Flags: change,
				Summary: "Denies all calls for some keys, for a time or for good.", Syntax: "policy pattern [EX duration] [REASON text]",
				Reply: "OK", Run: block, Writes: always, Urgent: true,
				Disclosure: command.Disclosure{Change: "policy", Pattern: 2},
			},
			{
				Name: "rl.unblock", Arity: 3, Flags: change,
				Summary: "Ends a block, and the ban of a key.", Syntax: "policy pattern", Reply: ifThere, Run: unblock,
				Writes: always, Urgent: true, Disclosure: command.Disclosure{Change: "policy", Pattern: 2},
			},
			{
				Name: "rl.exempt", Arity: -3, Flags: change,
				Summary: "Allows all calls for some keys, for a time or for good, and counts them.",
				Syntax:  "policy pattern [EX duration] [REASON text]", Reply: "OK", Run: exempt,
				Writes: always, Urgent: true, Disclosure: command.Disclosure{Change: "policy", Pattern: 2},
			},
			{
				Name: "rl.unexempt", Arity: 3, Flags: change,
				Summary: "Ends an exemption.", Syntax: "policy pattern", Reply: ifThere, Run: end(exemptKind), Writes: always, Urgent: true,
				Disclosure: command.Disclosure{Change: "policy", Pattern: 2},
			},
			{
				Name: "rl.changes", Arity: -1, Flags: show,
				Summary: "Lists the latest changes of policies, the newest first.", Syntax: "[COUNT count] [POLICY name] [PATTERN pattern]",
				Reply: "an array of maps: id, time, user, address, command, policy, pattern, before, after", Run: shown(changes),
				ReplySize: changesSize,
			},
		}, rulesCommands()...)),
		Server: func(s *command.Server, _ command.Slot) (any, command.Hooks) {
			k := &keeper{server: s}
			return k, command.Hooks{Decay: func(*command.Worker) { k.tidy() }}
		},
		Figures: figures(),
	}
}

const ifThere = "1 if there was one, 0 if not"

// change has the flags of commands that change policies, and show the flags of commands that show
// policies. Commands that change policies have a Writes function instead of FlagWrite, because a
// user with the permission to write keys must not be able to change limits.
const (
	change = show | command.FlagAdmin | command.FlagAudit
	show   = command.FlagNoScript | command.FlagNoMulti | command.FlagLocal | command.FlagFence
)

// always is the Writes function of commands that change policies.
func always(*command.Call, *command.Command, [][]byte) bool { return true }

// defaults returns the values that most entries of this group share. WordWork makes a call with any
// number of arguments exceed the bound of an event loop, so that it runs in the background.
func defaults() command.Defaults {
	return command.Defaults{
		Categories: command.CatPolicy, Group: "policy", Since: "1.0.0", Complexity: "O(N) of the entries that it changes or shows",
		WordWork: command.MaxLoopWork + 1,
	}
}

func policyContainer() *command.Command {
	return &command.Command{
		Name: "rl.policy", Arity: -2, Categories: command.CatPolicy, Group: "policy",
		Summary: "A container for commands about policies.", Since: "1.0.0",
		Sub: command.Entries(defaults(), []*command.Command{
			{
				Name: "rl.policy|set", Arity: -5, Flags: change,
				Summary: "Sets the limits of a policy.", Syntax: "name [MS] [SHADOW] [COUNT] [KEY IP v4 v6] [NOTIFY share%] [CLASS class KEEP share% ...] [COMMENT text] [FORCE] [SYNC] LIMITS clause [clause ...] [BAN refusals window block [FACTOR factor] [MAX time]]",
				Reply: "OK",
				Run:   setPolicy, Writes: always, Disclosure: command.Disclosure{Change: "policy", Named: 1},
			},
			{
				Name: "rl.policy|get", Arity: 3, Flags: show,
				Summary: "Shows a policy, what is set for a time, and what it has counted.", Syntax: "name", Reply: "a map", Run: shown(getPolicy),
			},
			{
				Name: "rl.policy|list", Arity: 2, Flags: show,
				Summary: "Lists the names of all policies.", Reply: "an array of names", Run: shown(listPolicies),
			},
			{
				Name: "rl.policy|del", Arity: 3, Flags: change,
				Summary: "Deletes a policy with all that belongs to it.", Syntax: "name", Reply: ifThere, Run: deletePolicy, Writes: always,
				Disclosure: command.Disclosure{Change: "policy", Named: 1},
			},
			{
				Name: "rl.policy|try", Arity: -4, Flags: change,
				Summary: "Has a candidate decide beside the policy, or ends that.", Syntax: "name <OFF | LIMITS clause [clause ...] [BAN refusals window block [FACTOR factor] [MAX time]]>",
				Reply: "OK", Run: tryPolicy, Writes: always, Disclosure: command.Disclosure{Change: "policy", Named: 1},
			},
			{
				Name: "rl.policy|dump", Arity: -2, Flags: show,
				Summary: "Returns all policies and overrides as YAML, or those that the policy file defines.", Syntax: "[FILE]",
				Reply: "a text", Run: shown(dump), ReplySize: dumpSize,
			},
			{
				Name: "rl.policy|diff", Arity: 3, Flags: show,
				Summary: "Says what APPLY would change.", Syntax: "yaml", Reply: "a text, empty for nothing", Run: shown(diff),
				ReplySize: dumpSize,
			},
			{
				Name: "rl.policy|apply", Arity: 3, Flags: change,
				Summary: "Makes policies and overrides those of a YAML text, or changes nothing.", Syntax: "yaml",
				Reply: "how many have changed", Run: apply, Writes: always, Disclosure: command.Disclosure{Change: "policy"},
			},
			{
				Name: "rl.policy|reload", Arity: 2, Flags: change,
				Summary: "Reads the policy file again.", Reply: "how many policies and overrides have changed", Run: reload, Files: true,
				Writes: always, Disclosure: command.Disclosure{Change: "policy"},
			},
		}),
	}
}

func overrideContainer() *command.Command {
	return &command.Command{
		Name: "rl.override", Arity: -2, Categories: command.CatPolicy, Group: "policy",
		Summary: "A container for commands about overrides.", Since: "1.0.0",
		Sub: command.Entries(defaults(), []*command.Command{
			{
				Name: "rl.override|set", Arity: -6, Flags: change,
				Summary: "Sets the limits of some keys of a policy.",
				Syntax:  "policy pattern [EX duration] [COMMENT text] LIMITS clause [clause ...] [BAN refusals window block [FACTOR factor] [MAX time]]", Reply: "OK", Run: setOverride,
				Writes: always, Disclosure: command.Disclosure{Change: "policy", Pattern: 3},
			},
			{
				Name: "rl.override|del", Arity: 4, Flags: change,
				Summary: "Deletes an override.", Syntax: "policy pattern", Reply: ifThere, Run: deleteOverride, Writes: always,
				Disclosure: command.Disclosure{Change: "policy", Pattern: 3},
			},
			{
				Name: "rl.override|list", Arity: 3, Flags: show,
				Summary: "Lists the overrides of a policy.", Syntax: "policy",
				Reply: "an array of maps: pattern, limits, ms, comment, ttl, file", Run: shown(listOverrides),
				ReplySize: listSize,
			},
		}),
	}
}
