// Package pattern matches the patterns of Lua 5.1. A [Matcher] walks the text of a
// pattern, as Lua does: compiling it first would pay only for those used often. Each step
// is paid from a budget, so that no pattern takes longer than its caller allows. The
// package knows no interpreter.
package pattern
