// Package limiters implements the commands of the rate limiters: CL.THROTTLE, SW.ALLOW, TB.ACQUIRE,
// CC.* and RL.*. Each command parses its arguments into an ask of its limiter's family, has the
// store decide the ask, and replies with the decision. [Group] returns the commands.
package limiters
