package command

import (
	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/arg"
)

// KeySpec says which arguments of a command are keys. First and Last are indices; the name of the
// command has the index 0, and a negative Last counts from the end. Step is the distance between
// two keys. If the caller gives the number of keys, Count is the index of that argument, and the
// keys follow it.
type KeySpec struct {
	First, Last, Step int
	Count             int
	// Derived says how keys are made from several arguments; nil if the keys are always arguments. A call
	// that has derived keys has no others.
	Derived *DerivedKey
	// Use says how the command uses its keys. If it is 0, commands that write read and update their
	// keys, and all others read them. Rest says how the command uses the keys after the first; 0
	// stands for Use.
	Use, Rest KeyUse
	// UseOf returns how a call uses its first key, for commands for which that depends on the
	// arguments; nil for most commands.
	UseOf func(args [][]byte) KeyUse
	// Channels says which arguments name channels that the user must be permitted to use.
	Channels ChannelSpec
	// single says that a user needs permission only for the first argument, which is the only key.
	// access is the permission that the first key needs.
	single bool
	access acl.Access
}

// DerivedKey says how the keys of a call are made from its arguments, for calls without an argument
// that is a key. Each key is identified by the index of the last argument that it is made from. A loop
// over the derived keys of a call with args is
//
//	for at := k.FirstDerived(args); at > 0; at = d.After(args, at) {
//
// Such a call may also use other keys that belong to a derived one: a user with access to the
// derived key may use all of them.
type DerivedKey struct {
	// Append appends the key that is made from the arguments up to args[at] to dst and returns the
	// extended buffer.
	Append func(dst []byte, args [][]byte, at int) []byte
	// Last is the index of the last argument that is a part of the first key; with an Option, it is
	// the least such index.
	Last int
	// Option is the option, in upper case, without which a call has no derived keys: the argument after
	// it is the last one that the first key is made from. It is "" if every call has derived keys.
	Option string
	// Next returns the index of the last argument that the key after the one at the index at is made
	// from, or 0 if there is none; it is nil for commands whose calls have one key. args has at least
	// one argument after args[at].
	Next func(args [][]byte, at int) int
	// Extra is the maximum number of bytes by which another key of a call is longer than the derived key
	// to which it belongs.
	Extra int
}

// FirstDerived returns the index of the last argument that the first derived key of a call with args is
// made from. It returns 0 if the call has no derived keys or too few arguments.
func (k *KeySpec) FirstDerived(args [][]byte) (at int) {
	d := k.Derived
	if d == nil {
		return 0
	}
	at = d.Last
	for d.Option != "" && at < len(args) && !arg.IsWord(args[at-1], d.Option) {
		at++
	}
	if at >= len(args) {
		return 0
	}
	return at
}

// After returns the index of the last argument that the next key is made from, after the key whose
// last argument is args[at]. It returns 0 if there is no other key.
func (d *DerivedKey) After(args [][]byte, at int) int {
	if d.Next == nil || at+1 >= len(args) {
		return 0
	}
	return d.Next(args, at)
}

// KeyUse is a set of flags that says how a command uses a key. It has one of the first four flags,
// and any of the others, which say what happens to the value. A command with UseRO alone reveals
// only that the key exists, and the type or the length of its value.
type KeyUse uint8

// ChannelSpec says which arguments of a command name channels that a user must be permitted to use:
// those with the indices First to Last, or to the end if Last is -1. First is 0 for commands
// without channels.
type ChannelSpec struct {
	First, Last int
	// Patterns says that these arguments are patterns of channels.
	Patterns bool
}

// OneKey is the KeySpec of commands whose first argument is their only key.
var OneKey = KeySpec{First: 1, Last: 1, Step: 1}

// Uses returns a copy of k with the use u, for a command that does not use its keys in the default
// way.
func (k KeySpec) Uses(u KeyUse) KeySpec {
	k.Use = u
	return k
}

// Range returns the indices of the keys in args, the arguments of a call: from first to end
// (exclusive) in steps of step. It does not include a derived key. If the argument with the number
// of keys is not an integer from 1 to the number of arguments that follow, there are no keys.
func (k *KeySpec) Range(args [][]byte) (first, end, step int) {
	switch {
	case k.Derived != nil && k.FirstDerived(args) > 0:
		return 0, 0, 1
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

// None reports whether no call of the command has keys.
func (k *KeySpec) None() bool { return k.First == 0 && k.Count == 0 && k.Derived == nil }

// Name returns the text that a log entry shows for args[i]: the derived key if i is the last
// argument that a key is made from, and otherwise args[i].
func (k *KeySpec) Name(args [][]byte, i int) []byte {
	for at := k.FirstDerived(args); at > 0; at = k.Derived.After(args, at) {
		if at == i {
			return k.Derived.Append(nil, args, at)
		}
	}
	return args[i]
}

// Names returns all keys of a call with args: the arguments that are keys, or else the derived keys.
func (k *KeySpec) Names(args [][]byte) (names [][]byte) {
	k.Each(args, func(i int) { names = append(names, args[i]) })
	for at := k.FirstDerived(args); at > 0; at = k.Derived.After(args, at) {
		names = append(names, k.Derived.Append(nil, args, at))
	}
	return names
}

// Positions returns the indices of the keys in args, in the order of [KeySpec.Range].
func (k *KeySpec) Positions(args [][]byte) (at []int) {
	k.Each(args, func(i int) { at = append(at, i) })
	return at
}

// Each calls f with the index of each key in args.
func (k *KeySpec) Each(args [][]byte, f func(i int)) {
	for i, end, step := k.Range(args); i < end; i += step {
		f(i)
	}
}

// These are the flags of a KeyUse, with the names that COMMAND shows.
const (
	UseRO KeyUse = 1 << iota // the command reads the value of the key
	UseRW                    // the command reads the value of the key and changes it
	UseOW                    // the command replaces the value of the key
	UseRM                    // the command deletes the key
	UseAccess
	UseInsert
	UseUpdate
	UseDelete
)

// These are the combinations of flags that several groups use.
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

// Names returns the names of the flags in u, as COMMAND spells them.
func (u KeyUse) Names() (names []string) {
	for i, name := range keyUseNames {
		if u&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Access returns the permission that a user needs for a key that is used as u says.
func (u KeyUse) Access() (a acl.Access) {
	if u&UseAccess != 0 {
		a |= acl.Read
	}
	if u&(UseInsert|UseUpdate|UseDelete) != 0 {
		a |= acl.Write
	}
	return a
}

// complete fills in the defaults of Use and Rest, and the fields single and access. writes says
// that the command may write.
func (k *KeySpec) complete(writes bool) {
	if k.Use == 0 && writes {
		k.Use = UseRW | UseAccess | UseUpdate
	} else if k.Use == 0 {
		k.Use = UseRO | UseAccess
	}
	if k.Rest == 0 {
		k.Rest = k.Use
	}
	k.single = k.First == 1 && k.Derived == nil && k.Last == 1 && k.Count == 0 && k.UseOf == nil && k.Channels.First == 0
	k.access = k.Use.Access()
}

// UseAt returns how a call with args uses its n-th key, counted from 0.
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
