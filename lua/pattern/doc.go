// Package pattern matches the patterns of Lua 5.1. A [Matcher] interprets the text of a pattern, as
// Lua does, since compiling would only pay for patterns that are used often. The matcher counts
// each step against a budget, so that a match takes no longer than its caller allows. The package
// does not depend on the interpreter.
package pattern
