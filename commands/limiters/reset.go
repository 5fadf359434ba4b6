package limiters

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/policy"
)

func resetCommand() *command.Command {
	return &command.Command{
		Name: "rl.reset", Arity: 3, Flags: command.FlagWrite | command.FlagMovableKeys | command.FlagAudit,
		Keys: command.KeySpec{Derived: &policyKey}, Categories: command.CatPolicy, Group: "policy",
		Summary: "Forgets what a key has used of a policy, of all its clauses and those of its candidate, and its bans.", Syntax: "policy key",
		Since: "1.0.0", Complexity: "O(1)", Reply: "how many clauses had something in use, and one more if there were denials or bans", RunOn: command.On(reset), Parse: resetOnStore, Answer: answerReset,
		Writes:     func(*command.Call, *command.Command, [][]byte) bool { return true },
		Disclosure: command.Disclosure{Change: "policy", Pattern: 2, ByCallers: true},
	}
}

// reset is the Run function of RL.RESET. It deletes the states of the key under the policy and its
// candidate, but no entries for the key, such as an override or a block. It deletes the state keys
// of the maximum number of clauses, because the limits may have had more clauses when the key was
// last used, or an override may have more. If the keys of the policy are addresses, it deletes the
// states of the key's network.
func reset(c storeCall) {
	name := c.Args[1]
	key, err := stateOf(c.Call, name, c.Args[2])
	if err != "" {
		c.Fail(err)
		return
	}
	n, db := int64(0), c.Client.Selected()
	for _, candidate := range [...]bool{false, true} {
		for i := range policy.MaxClauses {
			state := policy.AppendStateKey(c.Text[:0], name, key, i+1, candidate)
			c.KeepText(state)
			if c.Store.Delete(db, state) {
				n++
			}
		}
		state := policy.AppendBanKey(c.Text[:0], name, key, candidate)
		c.KeepText(state)
		if c.Store.Delete(db, state) {
			n++
		}
	}
	c.W.Int(n)
}
