// Package policies implements the commands that change and show policies. These are RL.POLICY,
// RL.OVERRIDE, RL.BOOST, RL.BLOCK, RL.EXEMPT and the commands that undo them, and RL.CHANGES. All
// of them run in the background, because a change waits for other changes.
//
// Package policy/registry keeps the records. RL.USE and RL.EXPLAIN, which look policies up, are
// in commands/limiters.
package policies
