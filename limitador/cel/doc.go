// Package cel has the part of the Common Expression Language that limits of Limitador use.
//
// An expression looks at descriptors, a list of maps from text to text, and a condition also at the name and the id of
// its limit. [Condition] and [Variable] parse a text into an [Expr]. They know the type of each part, so an expression
// that cannot be evaluated is an error of the text. The only error while one is evaluated is that it looks at what
// is not there; then it has no value. This is the language:
//
//   - "text", 'text', 123, true, false, null and [lists] of them
//   - descriptors, descriptors[0], descriptors[0].key, descriptors[0]["key"], limit.name, limit.id
//   - a == b, a != b, a < b, a <= b, a > b, a >= b for text, numbers, true and false (the first two), and null
//   - a in [lists], "key" in descriptors[0], has(descriptors[0].key)
//   - a && b, a || b, !a, and parentheses
//   - a.startsWith(b), a.endsWith(b), a.contains(b), size(a), a.size(), a + b
//
// Conditions are evaluated as in cel-rust 0.12, which Limitador uses: from left to right, and a part that looks at
// what is not there leaves the whole without a value. The size of text is its length in bytes.
package cel
