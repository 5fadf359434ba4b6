// Package ban bans keys that are denied often. A key that is denied so many times within a window is banned for a
// time, which is longer for each ban that follows soon. [Decide] is a pure function of the stored state, the
// instant and the parameters.
//
// # Rules
//
// The first denial starts a window. The denial that is the last of [Call.Refusals] within the window starts a ban,
// and empties the window. A denial after the end of a window starts the next one. While a key is banned, denials
// are not counted.
//
// A key has a level, from 0. A ban lasts Block × Factor^level, at most Max, and raises the level by one, unless it
// lasts Max. For each whole Max that passes after the end of a ban without another one, the level falls by one. The key
// has no state any more when the level is 0 and the window has ended.
package ban
