// Package limiters implements the commands of the rate limiters: CL.THROTTLE, SW.ALLOW,
// TB.ACQUIRE, CC.* and RL.*. Each command parses its arguments into a call of its family, has the
// store decide it, and replies. [Group] contains all of them.
package limiters
