package command

import (
	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/arg"
)

// KeySpec says where the keys are among the arguments: First and Last are 1-based (a negative Last
// counts from the end), and Step is the distance between them. If the caller gives the number of
// keys, Count is the index of that argument, and the keys follow it.
type KeySpec struct {
	First, Last, Step int
	Count             int
	// Derived says how the key is made from several arguments; nil if arguments are the keys.
	Derived *DerivedKey
	// Use is how the command uses its keys; by default, commands that write read and update them, and
	// all others read them. Rest is how the command uses the keys after the first, if that differs.
	Use, Rest KeyUse
	// UseOf returns Use if it depends on the arguments; nil for most commands.
	UseOf func(args [][]byte) KeyUse
	// Channels are the arguments that name channels which the user must be permitted to use.
	Channels ChannelSpec
	// single says that the first argument, one key, is all that a user needs permission for. access
	// is the permission that the key needs.
	single bool
	access acl.Access
}

// DerivedKey says how the key of a call is made from its first arguments, for commands of which no
// argument is a key. A call may use more keys that belong to this one: a user with access to this key
// may use all of them.
type DerivedKey struct {
	// Append appends the key of a call to dst.
	Append func(dst []byte, args [][]byte) []byte
	// Last is the index of the last argument that the key is made from. The first is 1.
	Last int
	// Extra bounds the bytes that the keys of a call have beyond those of these arguments.
	Extra int
}

// KeyUse is how a command uses a key: one of the first four flags, and what it does with the value.
// A command with UseRO alone reveals only that the value exists, its type or its length.
type KeyUse uint8

// ChannelSpec says which arguments of a command name channels that a user must be permitted to use:
// those from First to Last, or to the end if Last is -1. First is 0 for most commands: they have
// none.
type ChannelSpec struct {
	First, Last int
	// Patterns says that the arguments are patterns of channels.
	Patterns bool
}

// OneKey is the KeySpec of commands whose first argument is their only key.
var OneKey = KeySpec{First: 1, Last: 1, Step: 1}

// Uses returns k for a command that uses its keys in another way than the default.
func (k KeySpec) Uses(u KeyUse) KeySpec {
	k.Use = u
	return k
}

// Range returns the positions of the keys of a call: from first to end (exclusive) in steps of
// step. A malformed call has none.
func (k *KeySpec) Range(args [][]byte) (first, end, step int) {
	switch {
	case k.Count > 0:
		if k.Count >= len(args) {
			return 0, 0, 1
		}
		n, ok := arg.Int(args[k.Count])
		if !ok || n < 1 || n > int64(len(args)-k.Count-1) {
			return 0, 0, 1
		}
		return k.Count + 1, k.Count + 1 + int(n), 1
	case k.First == 0:
		return 0, 0, 1
	}
	last := k.Last
	if last < 0 {
		last += len(args)
	}
	return k.First, min(last+1, len(args)), k.Step
}

// None reports whether the command has no keys in any call.
func (k *KeySpec) None() bool { return k.First == 0 && k.Count == 0 && k.Derived == nil }

// Name returns what argument i of a call names, for log entries: the derived key if it is the last
// argument of one.
func (k *KeySpec) Name(args [][]byte, i int) []byte {
	if d := k.Derived; d != nil && i == d.Last {
		return d.Append(nil, args)
	}
	return args[i]
}

// Positions returns the indices in args that hold keys; none for a malformed call.
func (k *KeySpec) Positions(args [][]byte) (at []int) {
	k.Each(args, func(i int) { at = append(at, i) })
	return at
}

// Each calls f with the indices of args that hold keys.
func (k *KeySpec) Each(args [][]byte, f func(i int)) {
	for i, end, step := k.Range(args); i < end; i += step {
		f(i)
	}
}

// The flags of keys, as COMMAND spells them.
const (
	UseRO KeyUse = 1 << iota // reads
	UseRW                    // reads and changes
	UseOW                    // replaces
	UseRM                    // deletes
	UseAccess
	UseInsert
	UseUpdate
	UseDelete
)

// Combinations of uses that several groups have.
const (
	UsesNothing = UseRO
	UsesReads   = UseRO | UseAccess
	UsesInserts = UseRW | UseInsert
	UsesUpdates = UseRW | UseUpdate
	UsesDeletes = UseRW | UseDelete
	UsesTakes   = UseRW | UseAccess | UseDelete
	UsesSets    = UseOW | UseUpdate
)

var keyUseNames = [...]string{"RO", "RW", "OW", "RM", "access", "insert", "update", "delete"}

// Names returns the flags as COMMAND spells them.
func (u KeyUse) Names() (names []string) {
	for i, name := range keyUseNames {
		if u&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Access returns the permission that a user needs for the key.
func (u KeyUse) Access() (a acl.Access) {
	if u&UseAccess != 0 {
		a |= acl.Read
	}
	if u&(UseInsert|UseUpdate|UseDelete) != 0 {
		a |= acl.Write
	}
	return a
}

// complete fills in the defaults.
func (k *KeySpec) complete(writes bool) {
	if k.Use == 0 && writes {
		k.Use = UseRW | UseAccess | UseUpdate
	} else if k.Use == 0 {
		k.Use = UseRO | UseAccess
	}
	if k.Rest == 0 {
		k.Rest = k.Use
	}
	k.single = k.First == 1 && k.Last == 1 && k.Count == 0 && k.UseOf == nil && k.Channels.First == 0
	k.access = k.Use.Access()
}

// UseAt returns how a call uses its n-th key, counted from 0.
func (k *KeySpec) UseAt(args [][]byte, n int) KeyUse {
	switch {
	case n > 0:
		return k.Rest
	case k.UseOf != nil:
		return k.UseOf(args)
	default:
		return k.Use
	}
}
