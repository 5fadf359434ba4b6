package command

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// Command is one declarative entry of the table. Dispatch, COMMAND, its DOCS and
// GETKEYS, ACL categories, statistics, docs/commands.md and the README's table all
// derive from it; there is no second list of command names.
type Command struct {
	// Name in lower case. A subcommand has the name of its container before a bar:
	// "client|list".
	Name string
	// Arity counts the name itself; a negative one is a minimum.
	Arity int
	Flags Flag
	Keys  KeySpec
	// Categories are the ACL categories beside those that Flags imply.
	Categories Category
	Group      string
	Summary    string
	// Syntax is what follows the name.
	Syntax     string
	Since      string
	Complexity string
	// Reply says in words what is answered.
	Reply string
	// Run is nil for a container.
	Run func(*Call)
	Sub []*Command
	// WordWork is the work of each word of a call that has many, in units: see work.go.
	// 0 is what the keys and elements of most take.
	WordWork int

	// Writes reports whether a call changes something, for commands of which FlagWrite does
	// not say it; nil for all others.
	Writes func(c *Call, cmd *Command, args [][]byte) bool
	// AuditAttrs is what a line of the log says of a call beside who has made it; nil says
	// nothing. For commands with FlagAudit.
	AuditAttrs func(c *Call) []slog.Attr
	// Rejected tells that a call is refused before it runs, and returns the error to answer;
	// nil for e itself.
	Rejected func(c *Call, e resp.Error) resp.Error
	// Plan says what a call may do, for commands that run others; nil for all others.
	Plan func(c *Call, cmd *Command, args [][]byte) Plan
	// Work is the work of a call beyond what its words tell, when it is one of a transaction
	// in which so many words of commands of its group came before; nil if that is none.
	Work func(c *Call, cmd *Command, args [][]byte, before int) int
	// ReplySize is about how many bytes the reply of a call copies, for commands that run
	// others; nil for all others.
	ReplySize func(cl *Client, st Store, cmd *Command) int

	placed
}

// placed is what the table makes of an entry.
type placed struct {
	Id     int
	group  int // index of its group
	Parent *Command
	// FewWords is how many words of a call nobody asks about: see work.go.
	FewWords int
	// Feeds says that it may put elements under a key that somebody waits for.
	Feeds bool
}

// Plan is what a call may do that runs other commands.
type Plan struct {
	Long     bool // nobody knows how long it takes
	Confined bool // it touches no other keys than those it names
	Writes   bool // it may change something
	AllowOOM bool // it may run when memory is full
}

// KeySpec is where the keys are among the arguments: 1-based first and last
// (negative from the end), and the step between them. Find, where the positions
// depend on the arguments, returns their indices or false for a malformed call.
type KeySpec struct {
	First, Last, Step int
	Find              func(args [][]byte) ([]int, bool)
}

// OneKey is the KeySpec of commands whose first argument is their only key.
var OneKey = KeySpec{First: 1, Last: 1, Step: 1}

// Positions returns the indices in args that hold keys; none for a malformed call.
func (k *KeySpec) Positions(args [][]byte) []int {
	if k.Find != nil {
		at, _ := k.Find(args)
		return at
	}
	if k.First == 0 {
		return nil
	}
	last := k.Last
	if last < 0 {
		last += len(args)
	}
	var at []int
	for i := k.First; i <= last && i < len(args); i += k.Step {
		at = append(at, i)
	}
	return at
}

// Flag is a set of the command flags that COMMAND INFO shows.
type Flag uint32

// The flags, named as Redis names them.
const (
	FlagWrite Flag = 1 << iota
	FlagReadonly
	FlagDenyOOM
	FlagModule
	FlagAdmin
	FlagPubSub
	FlagNoScript
	FlagBlocking
	FlagLoading
	FlagStale
	FlagFast
	FlagNoAuth
	FlagMovableKeys
	FlagNoMulti
	FlagAllowBusy
	FlagSkipSlowlog
)

var flagNames = []struct {
	flag Flag
	name string
}{
	{FlagWrite, "write"},
	{FlagReadonly, "readonly"},
	{FlagDenyOOM, "denyoom"},
	{FlagModule, "module"},
	{FlagAdmin, "admin"},
	{FlagPubSub, "pubsub"},
	{FlagNoScript, "noscript"},
	{FlagBlocking, "blocking"},
	{FlagLoading, "loading"},
	{FlagStale, "stale"},
	{FlagFast, "fast"},
	{FlagNoAuth, "no_auth"},
	{FlagMovableKeys, "movablekeys"},
	{FlagNoMulti, "no_multi"},
	{FlagAllowBusy, "allow_busy"},
	{FlagSkipSlowlog, "skip_slowlog"},
}

// Names returns the flags as COMMAND INFO spells them, in a fixed order.
func (f Flag) Names() []string {
	var names []string
	for _, n := range flagNames {
		if f&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// Category is a set of ACL categories.
type Category uint32

// The ACL categories of Redis that our commands fall in, and our own @ratelimit.
const (
	CatKeyspace Category = 1 << iota
	CatRead
	CatWrite
	CatString
	CatPubSub
	CatAdmin
	CatFast
	CatSlow
	CatBlocking
	CatDangerous
	CatConnection
	CatTransaction
	CatScripting
	CatRateLimit
	CatList
	CatSet
	CatHash
	CatSortedSet
)

// categoryName is a category and what ACL calls it.
type categoryName struct {
	category Category
	Name     string
}

var CategoryNames = []categoryName{
	{CatKeyspace, "keyspace"},
	{CatRead, "read"},
	{CatWrite, "write"},
	{CatSet, "set"},
	{CatSortedSet, "sortedset"},
	{CatList, "list"},
	{CatHash, "hash"},
	{CatString, "string"},
	{CatPubSub, "pubsub"},
	{CatAdmin, "admin"},
	{CatFast, "fast"},
	{CatSlow, "slow"},
	{CatBlocking, "blocking"},
	{CatDangerous, "dangerous"},
	{CatConnection, "connection"},
	{CatTransaction, "transaction"},
	{CatScripting, "scripting"},
	{CatRateLimit, "ratelimit"},
}

// Names returns the categories without their '@', in a fixed order.
func (c Category) Names() []string {
	var names []string
	for _, n := range CategoryNames {
		if c&n.category != 0 {
			names = append(names, n.Name)
		}
	}
	return names
}

// AllCategories returns the categories of the command: its own and those that its
// flags imply, as Redis derives them (setImplicitACLCategories). A module's
// command has none, which is what redis-cell's users see.
func (c *Command) AllCategories() Category {
	if c.Flags&FlagModule != 0 {
		return 0
	}
	cats := c.Categories
	for _, implied := range []struct {
		flag Flag
		cats Category
	}{
		{FlagWrite, CatWrite},
		{FlagReadonly, CatRead},
		{FlagAdmin, CatAdmin | CatDangerous},
		{FlagPubSub, CatPubSub},
		{FlagFast, CatFast},
		{FlagBlocking, CatBlocking},
	} {
		if c.Flags&implied.flag != 0 {
			cats |= implied.cats
		}
	}
	if cats&CatFast == 0 {
		cats |= CatSlow
	}
	return cats
}

// OnlyFails reports whether the command is there so that callers are told why it does
// nothing.
func (c *Command) OnlyFails() bool { return c.Run != nil && c.Reply == "an error" }

// AlwaysEmpty reports whether the command knows of nothing that it could reply.
func (c *Command) AlwaysEmpty() bool { return c.Run != nil && strings.HasPrefix(c.Reply, "an empty ") }

// NeedsMemory reports whether a transaction or script may not begin with the command
// when memory is full. Limiters go on, but for new keys.
func (c *Command) NeedsMemory() bool {
	return c.Flags&FlagDenyOOM != 0 && c.Categories&CatRateLimit == 0
}

// ArityOK reports whether a call with n words, the name included, fits.
func (c *Command) ArityOK(n int) bool {
	return n == c.Arity || (c.Arity < 0 && n >= -c.Arity)
}

// check panics when the entry is not fit to be published; it runs at start-up.
func (c *Command) check() {
	switch {
	case c.Name == "" || c.Summary == "" || c.Since == "" || c.Group == "":
		panic(fmt.Sprintf("commands: entry %q lacks a name, summary, since or group", c.Name))
	case c.Arity == 0:
		panic(fmt.Sprintf("commands: entry %q has no arity", c.Name))
	case c.Run == nil && c.Sub == nil:
		panic(fmt.Sprintf("commands: entry %q does nothing", c.Name))
	case c.Run != nil && c.Complexity == "":
		panic(fmt.Sprintf("commands: entry %q lacks its complexity", c.Name))
	}
}
