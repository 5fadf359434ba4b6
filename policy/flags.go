package policy

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/tokenbucket"
)

// Flags are the properties of a policy as a whole. They hold under its overrides and for its candidate, too.
type Flags struct {
	// Shadow says that calls are decided and charged as usual, but always allowed.
	Shadow bool
	// Count says that the limits also charge the calls that they deny, but take no place of a concurrency
	// limit for them.
	Count bool
	// Key is the form of the keys of the policy.
	Key KeyForm
	// Notify is the share of a limit, in percent from 1 to 100, at which subscribers get a notice about a key. They
	// also get a notice when a key is denied. 0 means that there are no notices.
	Notify int64
	// Classes is the text of the classes of calls: see [ParseClasses]. It is text so that Flags can be compared.
	Classes string
}

// MaxClasses is the maximum number of classes of a policy.
const MaxClasses = 16

// ErrClass means that a class of a policy is not valid.
var ErrClass = errors.New("a class is a name of 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-', with a share from 0% to 100%; a policy has at most 16, with different names")

// ErrClassDebt means that a policy has a class that leaves units, and limits that lend tokens.
var ErrClassDebt = errors.New("a policy with a DEBT clause has no class that keeps more than 0%")

// Class is a class of calls that leave a share of each limit for others.
type Class struct {
	// Name follows the rules for the name of a policy.
	Name string
	// Keep is the share in percent, from 0 to 100.
	Keep int64
}

// String returns the class as [ParseClasses] reads it, such as "batch 30%".
func (c Class) String() string { return c.Name + " " + ShareText(c.Keep) }

// ClassText returns the text of classes, sorted by name. The error is [ErrClass], also if a name occurs twice.
func ClassText(classes []Class) (string, error) {
	if len(classes) > MaxClasses {
		return "", ErrClass
	}
	classes = slices.Clone(classes)
	slices.SortFunc(classes, func(a, b Class) int { return strings.Compare(a.Name, b.Name) })
	var words []string
	for i, c := range classes {
		if CheckName([]byte(c.Name)) != nil || c.Keep < 0 || c.Keep > 100 || i > 0 && c.Name == classes[i-1].Name {
			return "", ErrClass
		}
		words = append(words, c.String())
	}
	return strings.Join(words, " "), nil
}

// ParseClasses returns the classes of text, which [ClassText] has written. The error is [ErrClass].
func ParseClasses(text string) (classes []Class, err error) {
	words := strings.Fields(text)
	for i := 0; i+1 < len(words); i += 2 {
		keep, err := ParseShare(words[i+1])
		if err != nil {
			return nil, err
		}
		classes = append(classes, Class{words[i], keep})
	}
	if again, err := ClassText(classes); err != nil || again != text {
		return nil, ErrClass
	}
	return classes, nil
}

// ErrNotify means that the mark of a policy is not valid.
var ErrNotify = errors.New("the mark of NOTIFY is a share from 1% to 100%")

// ParseMark parses the mark of NOTIFY, such as 80%, from 1% to 100%. The error is [ErrNotify].
func ParseMark(text string) (percent int64, err error) {
	if percent, err = ParseShare(text); err != nil || percent == 0 {
		return 0, ErrNotify
	}
	return percent, nil
}

// ParseShare parses a share such as 30%, from 0% to 100%. The error is [ErrClass].
func ParseShare(text string) (percent int64, err error) {
	number, isShare := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(number, 10, 7)
	if err != nil || !isShare || n > 100 || len(number) > 1 && number[0] == '0' {
		return 0, ErrClass
	}
	return int64(n), nil
}

// ShareText returns the share of percent as [ParseShare] reads it.
func ShareText(percent int64) string { return strconv.FormatInt(percent, 10) + "%" }

// checkClasses returns [ErrClass] if the classes are not valid, and [ErrClassDebt] if limits do not allow them.
func (f *Flags) checkClasses(limits *Limits) error {
	classes, err := ParseClasses(f.Classes)
	if err != nil || limits == nil {
		return err
	}
	keeps := slices.ContainsFunc(classes, func(c Class) bool { return c.Keep > 0 })
	lends := slices.ContainsFunc(limits.Clauses, func(c Clause) bool { return c.Bucket != nil && c.Bucket.Mode == tokenbucket.Debt })
	if keeps && lends {
		return ErrClassDebt
	}
	return nil
}

// ClassList returns the classes, sorted by name.
func (f *Flags) ClassList() []Class {
	classes, _ := ParseClasses(f.Classes) // ParseClasses cannot fail, because ClassText has written the text
	return classes
}

// Share returns the share in percent that the class called name leaves for others. found is false if there is no such
// class. It allocates nothing.
func (f *Flags) Share(name []byte) (percent int64, found bool) {
	for rest := f.Classes; rest != ""; {
		var word, share string
		word, rest, _ = strings.Cut(rest, " ")
		share, rest, _ = strings.Cut(rest, " ")
		if word == string(name) {
			percent, _ = ParseShare(share) // ParseShare cannot fail, because ParseClasses has accepted the share
			return percent, true
		}
	}
	return 0, false
}

// Switch is a flag that is on or off.
type Switch struct {
	// Word is the word of RL.POLICY SET that turns the flag on. Field is the name of the flag in YAML, in
	// records and in replies.
	Word, Field string
	// Of returns a pointer to the field of f that has the flag.
	Of func(f *Flags) *bool
}

// Switches has the flags that are on or off, in the order in which they are written.
var Switches = []Switch{
	{"SHADOW", "shadow", func(f *Flags) *bool { return &f.Shadow }},
	{"COUNT", "count", func(f *Flags) *bool { return &f.Count }},
}
