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

// These are the kinds. Override and the kinds after it have a pattern.
const (
	// Main is the policy itself. It uses Limits and Flags.
	Main Kind = iota
	// Candidate is decided and charged in addition to Main, but does not affect the reply. It uses
	// Limits.
	Candidate
	// Override replaces the limits of Main for some keys. It uses Limits.
	Override
	// Boost multiplies the limits in force for some keys. It uses Factor.
	Boost
	// Block denies all calls for some keys.
	Block
	// Exempt allows all calls for some keys, and counts them.
	Exempt

	kinds = iota
)

// kindNames has, for each kind, the word with which the keys of its records begin. These names are
// part of the file formats.
var kindNames = [kinds]string{"main", "try", "override", "boost", "block", "exempt"}

// String returns the name of the kind, as [Entry.AppendKey] writes it.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// HasPattern reports whether entries of the kind have a pattern. A policy has at most one entry of
// each kind without a pattern.
func (k Kind) HasPattern() bool { return k >= Override }

func (k Kind) hasLimits() bool { return k <= Override }

// These are the bounds of [Entry.Factor], in thousandths.
const (
	MinFactor = 1
	OneFactor = 1000
	MaxFactor = 1000 * 1000
)

// Entry is one setting. There is at most one for each kind, policy and pattern. An entry of a table
// must not be changed.
type Entry struct {
	Kind Kind
	// Flags are the flags of the policy if the kind is Main, and otherwise zero.
	Flags
	// File says that the policy file defines the entry. It can define Main, Candidate and
	// Override.
	File bool
	// Policy is the name of the policy.
	Policy string
	// Pattern selects keys: see [CheckPattern]. It is empty for Main and Candidate.
	Pattern string
	// Limits are the limits of Main, Candidate and Override, otherwise nil.
	Limits *Limits
	// Comment is a text for operators, such as the REASON of a block: at most [MaxComment] bytes of
	// UTF-8 without control characters.
	Comment string
	// Factor is the factor of Boost in thousandths, from [MinFactor] to [MaxFactor], otherwise 0.
	Factor int64
	// Until is the first instant at which the entry is no longer in force. It is [limit.MaxInstant]
	// for a permanent entry; Main and Candidate are permanent.
	Until limit.Instant
	// Since is the instant at which the entry was set. It has no effect.
	Since limit.Instant
}

// These are the errors of an invalid entry, in addition to [ErrName] and [ErrPattern].
var (
	// ErrKind means that the kind does not exist.
	ErrKind = errors.New("unknown kind of entry")
	// ErrComment means that the comment is too long, is not UTF-8 or has control characters.
	ErrComment = errors.New("a comment has at most 1024 bytes of UTF-8 without control characters")
	// ErrFactor means that the factor of a boost is out of range.
	ErrFactor = errors.New("a factor is from 0.001 to 1000")
	// ErrField means that the entry has a field that its kind does not have, or lacks one that its
	// kind has.
	ErrField = errors.New("the entry has a field that its kind has not, or lacks one")
)

// Check returns nil for a valid entry, otherwise [ErrKind], [ErrName], [ErrPattern], [ErrComment],
// [ErrKey], [ErrClass], [ErrClassDebt], [ErrNotify], [ErrFactor] or [ErrField]. It does not compare a pattern with the Key of its policy.
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
	if err := e.Key.check(); err != nil {
		return err
	}
	if err := e.checkClasses(e.Limits); err != nil {
		return err
	}
	if e.Notify < 0 || e.Notify > 100 {
		return ErrNotify
	}
	switch {
	case e.Kind == Boost && (e.Factor < MinFactor || e.Factor > MaxFactor):
		return ErrFactor
	case e.Kind != Boost && e.Factor != 0,
		!e.Kind.HasPattern() && (e.Pattern != "" || e.Until != limit.MaxInstant),
		(e.Limits != nil) != e.Kind.hasLimits(),
		e.Flags != (Flags{}) && e.Kind != Main,
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

// InForce reports whether the entry is in force at now: now is before Until.
func (e *Entry) InForce(now limit.Instant) bool { return now < e.Until }

// TTL returns the number of seconds from now until the entry ends, rounded up; 0 if it has ended.
// It returns -1 if the entry is permanent or e is nil.
func (e *Entry) TTL(now limit.Instant) int64 {
	if e == nil || e.Until == limit.MaxInstant {
		return -1
	}
	return limit.SecondsUp(max(0, e.Until.Sub(now)))
}
