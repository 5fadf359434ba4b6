// Package limiters has the commands that decide: CL.THROTTLE, SW.ALLOW, TB.ACQUIRE,
// CC.* and RL.*. Each parses its words into a call of its family, has the store decide,
// and replies; [Group] is all of them.
package limiters
