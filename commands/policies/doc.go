// Package policies implements the commands that change and show policies. These are RL.POLICY,
// RL.OVERRIDE, RL.BOOST, RL.BLOCK, RL.EXEMPT, the commands that undo these, RL.CHANGES, and RL.RULES and RL.MATCH, which
// show the rules of files of envoyproxy/ratelimit. Clients' calls run in the background, because a change waits for other changes.
//
// Package policy/registry keeps the records of policies. RL.USE and RL.EXPLAIN, which look policies
// up, are in package limiters.
package policies
