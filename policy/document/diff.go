package document

// Op is what happens to an entry.
type Op byte

const (
	// Add is an entry that is new.
	Add Op = '+'
	// Remove is an entry that is there no longer.
	Remove Op = '-'
	// Replace is an entry that is there with other content.
	Replace Op = '~'
)

// Change is what differs between two documents in one policy or override.
type Change struct {
	// Op is what happens.
	Op Op
	// Policy is the name of the policy.
	Policy string
	// Pattern is that of the override. It is empty if the policy itself changes.
	Pattern string
	// Before and After are the entry as YAML on one line. Before of Add and After of Remove
	// are empty.
	Before, After string
}

// Diff returns the changes that turn from into to, sorted by policy and pattern, a policy
// before its overrides. What to does not have is removed.
func Diff(from, to *Document) []Change { return nil }

// AppendChanges appends changes as text for people to dst, one group of lines for each.
func AppendChanges(dst []byte, changes []Change) []byte { return dst }
