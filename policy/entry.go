package policy

import (
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/cellserver/cellserver/limit"
)

// Kind is the effect of an [Entry].
type Kind uint8

// The kinds. Those from Override on have a pattern.
const (
	// Main is the policy itself: Limits, Shadow.
	Main Kind = iota
	// Candidate is decided and charged beside Main, and never answers: Limits.
	Candidate
	// Override replaces the limits of Main for some keys: Limits.
	Override
	// Boost multiplies the limits in force for some keys: Factor.
	Boost
	// Block denies all calls for some keys.
	Block
	// Exempt allows all calls for some keys, and counts them.
	Exempt

	kinds = iota
)

// kindNames are the first part of the keys of records: they are part of the file formats.
var kindNames = [kinds]string{"main", "try", "override", "boost", "block", "exempt"}

// String returns the name of the kind, as [Entry.AppendKey] writes it.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// HasPattern reports whether entries of the kind have a pattern. The others are one for each
// policy.
func (k Kind) HasPattern() bool { return k >= Override }

// hasLimits reports whether entries of the kind have limits.
func (k Kind) hasLimits() bool { return k <= Override }

// The bounds of [Entry.Factor], in thousandths.
const (
	MinFactor = 1
	OneFactor = 1000
	MaxFactor = 1000 * 1000
)

// Entry is one thing that has been set. There is at most one for each kind, policy and pattern.
// An entry of a table must not be changed.
type Entry struct {
	Kind Kind
	// Shadow is of Main: decided and charged as usual, always answered "go ahead".
	Shadow bool
	// File says that the policy file defines the entry. It can define Main, Candidate and
	// Override.
	File bool
	// Policy is the name of the policy.
	Policy string
	// Pattern says for which keys: see [CheckPattern]. It is empty for Main and Candidate.
	Pattern string
	// Limits are those of Main, Candidate and Override, else nil.
	Limits *Limits
	// Comment is a text for people, such as the REASON of a block: at most [MaxComment] bytes
	// of UTF-8 without control characters.
	Comment string
	// Factor is that of Boost in thousandths, from [MinFactor] to [MaxFactor], else 0.
	Factor int64
	// Until is the first instant at which the entry is no longer in force, [limit.MaxInstant]
	// for one that stays. Main and Candidate stay.
	Until limit.Instant
	// Since is when the entry was set. It has no effect.
	Since limit.Instant
}

// The ways in which an entry can be unsound, beside [ErrName] and [ErrPattern].
var (
	// ErrKind: a kind that does not exist.
	ErrKind = errors.New("unknown kind of entry")
	// ErrComment: a comment that is too long, is not UTF-8 or has control characters.
	ErrComment = errors.New("a comment has at most 1024 bytes of UTF-8 without control characters")
	// ErrFactor: a factor of a boost that is out of range.
	ErrFactor = errors.New("a factor is from 0.001 to 1000")
	// ErrField: something is set that entries of the kind do not have, or is missing.
	ErrField = errors.New("the entry has a field that its kind has not, or lacks one")
)

// Check returns nil for a sound entry, else one of the errors above, [ErrName] or [ErrPattern].
func (e *Entry) Check() error {
	if e.Kind >= kinds {
		return ErrKind
	}
	if err := CheckName([]byte(e.Policy)); err != nil {
		return err
	}
	if e.Kind.HasPattern() {
		if err := CheckPattern([]byte(e.Pattern)); err != nil {
			return err
		}
	}
	if err := checkComment(e.Comment); err != nil {
		return err
	}
	switch {
	case e.Kind == Boost && (e.Factor < MinFactor || e.Factor > MaxFactor):
		return ErrFactor
	case e.Kind != Boost && e.Factor != 0,
		!e.Kind.HasPattern() && (e.Pattern != "" || e.Until != limit.MaxInstant),
		(e.Limits != nil) != e.Kind.hasLimits(),
		e.Shadow && e.Kind != Main,
		e.File && !e.Kind.hasLimits():
		return ErrField
	}
	return nil
}

func checkComment(s string) error {
	if len(s) > MaxComment || !utf8.ValidString(s) {
		return ErrComment
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return ErrComment
		}
	}
	return nil
}

// InForce reports whether the entry applies at now.
func (e *Entry) InForce(now limit.Instant) bool { return now < e.Until }

// TTL is how many seconds are left of the entry at now, rounded up and at least 0; -1 if it stays, or
// there is none: e is nil.
func (e *Entry) TTL(now limit.Instant) int64 {
	if e == nil || e.Until == limit.MaxInstant {
		return -1
	}
	return limit.SecondsUp(max(0, e.Until.Sub(now)))
}
