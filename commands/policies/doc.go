// Package policies has the commands that change and show policies: RL.POLICY, RL.OVERRIDE,
// RL.BOOST, RL.BLOCK, RL.EXEMPT and their opposites, and RL.CHANGES. All run in the background,
// for a change waits for others.
//
// What is kept, and how, is in policy/registry. RL.USE and RL.EXPLAIN, which look policies up, are
// in commands/limiters.
package policies
