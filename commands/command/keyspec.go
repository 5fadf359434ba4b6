package command

import (
	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/policy"
)

// KeySpec is where the keys are among the arguments: 1-based first and last
// (negative from the end), and the step between them. Where the caller says how many keys
// there are, Count is the argument that does, and the keys are those behind it.
type KeySpec struct {
	First, Last, Step int
	Count             int
	// Policy says that the key is none of the arguments: the first two, the name of a
	// policy and what that is asked about, make it. See [KeySpec.AppendPolicyKey].
	Policy bool
	// Use is how the keys are used, and Rest how those behind the first are where that is
	// not the same. The table fills in what most commands do: see [KeyUses].
	Use, Rest KeyUse
	// UseOf is Use where it depends on the arguments; nil for most.
	UseOf func(args [][]byte) KeyUse
	// Channels are the arguments that name channels which a user has to be allowed.
	Channels ChannelSpec
	// single says that what a user has to be allowed of the arguments is one key, the first
	// of them, and access what it has to be allowed with that.
	single bool
	access acl.Access
}

// KeyUse is how a command uses a key: one of the first four, and what it does with the value
// of the key. A command with UseRO alone tells nothing of the value but that it is there,
// its type or its length.
type KeyUse uint8

// ChannelSpec is which arguments of a command name channels that a user has to be allowed:
// those from First to Last, or to the end if Last is -1. First is 0 for most commands.
type ChannelSpec struct {
	First, Last int
	// Patterns says that they are patterns of channels.
	Patterns bool
}

// OneKey is the KeySpec of commands whose first argument is their only key.
var OneKey = KeySpec{First: 1, Last: 1, Step: 1}

// Range returns where the keys of a call are: those from first until before end, step apart;
// none for a malformed call.
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

// None reports whether no call has a key.
func (k *KeySpec) None() bool { return k.First == 0 && k.Count == 0 && !k.Policy }

// AppendPolicyKey appends the key of a call that is about a policy to dst. A limit with several
// clauses has others, which belong to it: who may use this one may use all.
func (k *KeySpec) AppendPolicyKey(dst []byte, args [][]byte) []byte {
	return policy.AppendStateKey(dst, args[1], args[2], 1, false)
}

// Name returns what the argument i of a call names, for people: the key of a policy if the call is
// about one.
func (k *KeySpec) Name(args [][]byte, i int) []byte {
	if k.Policy && i == policyKeyAt {
		return k.AppendPolicyKey(nil, args)
	}
	return args[i]
}

// policyKeyAt is the argument that the key of a policy ends with.
const policyKeyAt = 2

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

// Uses that several groups have.
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

// Access returns what a user must be allowed to do with the key.
func (u KeyUse) Access() (a acl.Access) {
	if u&UseAccess != 0 {
		a |= acl.Read
	}
	if u&(UseInsert|UseUpdate|UseDelete) != 0 {
		a |= acl.Write
	}
	return a
}

// complete fills in what most commands do.
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

// UseAt returns how a call uses its n-th key, from 0.
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
