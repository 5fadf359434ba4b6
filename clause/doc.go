// Package clause parses the arguments of commands of rate limiters. These are the arguments of
// CL.THROTTLE, SW.ALLOW, TB.ACQUIRE and CC.*, and the clauses CL, SW, TB and CC, which define a
// limit in other commands. A clause is parsed into a [Room]. The package does not depend on
// commands or calls.
package clause
