// Package limiters has the commands of the limiters: CL.THROTTLE, SW.ALLOW, TB.ACQUIRE,
// CC.* and RL.*. Each parses its arguments into a call of its family, has the store decide,
// and replies. [Group] contains all of them.
package limiters
