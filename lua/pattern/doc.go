// Package pattern matches the patterns of Lua 5.1. A [Matcher] interprets the text of a pattern, as
// Lua does: compiling it first would only pay for patterns that are used often. Each step is
// counted against a budget, so that no pattern takes longer than its caller allows. The package
// does not depend on the interpreter.
package pattern
