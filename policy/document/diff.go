package document

// Op is the kind of change to an entry.
type Op byte

const (
	// Add means that the entry is new.
	Add Op = '+'
	// Remove means that only the old document has the entry.
	Remove Op = '-'
	// Replace means that the entry has other content.
	Replace Op = '~'
)

// Change is a difference between two documents in one policy or override.
type Change struct {
	// Op says whether the entry was added, removed or replaced.
	Op Op
	// Policy is the name of the policy.
	Policy string
	// Pattern is the pattern of the override. It is empty if the policy itself changes.
	Pattern string
	// Before and After are the entry as YAML on one line. Before is empty for Add, and After for
	// Remove.
	Before, After string
}

// Diff compares two documents: from is the present one, and to is the wanted one. It returns the
// changes from the present to the wanted document, sorted by policy and pattern, with a policy
// before its overrides. An entry that only the present document has is removed.
func Diff(from, to *Document) []Change {
	var changes []Change
	before, after := from.sorted(), to.sorted()
	for len(before) > 0 || len(after) > 0 {
		var old, now *Policy
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].Name < after[0].Name:
			old, before = before[0], before[1:]
		case len(before) == 0 || after[0].Name < before[0].Name:
			now, after = after[0], after[1:]
		default:
			old, now, before, after = before[0], after[0], before[1:], after[1:]
		}
		changes = diffPolicy(changes, old, now)
	}
	return changes
}

// diffPolicy appends the changes of one policy from old to now. old or now is nil if a document
// does not have the policy.
func diffPolicy(changes []Change, old, now *Policy) []Change {
	var oldText, nowText string
	var before, after []*Override
	var name string
	if old != nil {
		name, oldText, before = old.Name, string(old.appendFlow(nil)), old.sorted()
	}
	if now != nil {
		name, nowText, after = now.Name, string(now.appendFlow(nil)), now.sorted()
	}
	changes = appendChange(changes, name, "", oldText, nowText)
	for len(before) > 0 || len(after) > 0 {
		var pattern, oldText, nowText string
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].Pattern < after[0].Pattern:
			pattern = before[0].Pattern
		default:
			pattern = after[0].Pattern
		}
		if len(before) > 0 && before[0].Pattern == pattern {
			oldText, before = string(before[0].appendFlow(nil)), before[1:]
		}
		if len(after) > 0 && after[0].Pattern == pattern {
			nowText, after = string(after[0].appendFlow(nil)), after[1:]
		}
		changes = appendChange(changes, name, pattern, oldText, nowText)
	}
	return changes
}

// appendChange appends the change of one entry, unless its texts before and after are the same. A
// text is "" if a document does not have the entry.
func appendChange(changes []Change, policy, pattern, before, after string) []Change {
	op := Replace
	switch {
	case before == after:
		return changes
	case before == "":
		op = Add
	case after == "":
		op = Remove
	}
	return append(changes, Change{Op: op, Policy: policy, Pattern: pattern, Before: before, After: after})
}

// Append appends the change as text for display. The first line begins with the sign of the change.
// Indented lines with the entry before and after the change follow.
func (c *Change) Append(dst []byte) []byte {
	dst = append(append(dst, byte(c.Op), ' '), c.Policy...)
	if c.Pattern != "" {
		dst = appendScalar(append(dst, ' '), c.Pattern)
	}
	dst = append(dst, '\n')
	if c.Before != "" {
		dst = append(append(append(dst, "    - "...), c.Before...), '\n')
	}
	if c.After != "" {
		dst = append(append(append(dst, "    + "...), c.After...), '\n')
	}
	return dst
}

// AppendChanges appends changes as text for display, a group of lines for each.
func AppendChanges(dst []byte, changes []Change) []byte {
	for i := range changes {
		dst = changes[i].Append(dst)
	}
	return dst
}
