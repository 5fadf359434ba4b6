// Package clause reads the words of limiters: the arguments of CL.THROTTLE, SW.ALLOW,
// TB.ACQUIRE and CC.*, and the clauses CL, SW, TB and CC that say a limit in other commands.
// A clause is read into a [Room]. The package has no commands and knows no call.
package clause
