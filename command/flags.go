package command

// Flag is a set of command flags: those that COMMAND INFO shows, and those that only the server
// uses.
type Flag uint32

// The flags of Redis, which COMMAND INFO shows. Redis documents their meaning.
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

// FlagLinear marks commands that may iterate over all elements of a collection that they name. For
// a transaction with such a command, the size of the collection counts as work. LPOP, ZPOPMIN and
// similar commands do not have the flag, because they usually remove only a few elements. COMMAND
// does not show the flag.
const FlagLinear Flag = 1 << 30

// FlagFence marks commands that may wait, that change the state of the client, or that read state,
// other than that of their keys, which earlier commands of the client may change. With a Remote, such
// a command runs only after all earlier commands of the client are finished. COMMAND does not show
// the flag.
const FlagFence Flag = 1 << 29

// FlagLocal marks commands that access no key. A server with a Remote serves them, too, although no
// key is in its process. COMMAND does not show the flag.
const FlagLocal Flag = 1 << 28

// FlagEveryKey marks commands that show or delete keys which are not among their arguments. COMMAND
// does not show the flag.
const FlagEveryKey Flag = 1 << 27

// FlagDecides marks commands whose reply is the decision of a limiter. COMMAND does not show the
// flag.
const FlagDecides Flag = 1 << 26

// FlagConnection marks commands about the connection that sends them: its properties, its
// subscriptions, its queued commands or watched keys. COMMAND does not show the flag.
const FlagConnection Flag = 1 << 25

// FlagSyncing marks commands that run while the server is loading, but only if it is a replica:
// dispatch does not refuse them, and their handlers check the role. COMMAND does not show the flag.
const FlagSyncing Flag = 1 << 24

// FlagImmediate marks commands that run at once inside MULTI instead of being queued for EXEC. COMMAND
// does not show the flag.
const FlagImmediate Flag = 1 << 23

// FlagSubscriber marks commands that a RESP2 client with subscriptions may run. COMMAND does not show
// the flag.
const FlagSubscriber Flag = 1 << 22

// FlagSelects marks the command that changes the selected database. COMMAND does not show the flag.
const FlagSelects Flag = 1 << 21

// FlagMayReplicate marks commands that do not write, but that a read-only script may not run:
// Redis' flag may_replicate. COMMAND does not show the flag.
const FlagMayReplicate Flag = 1 << 20

// FlagUnwatches marks commands that end the client's watches of keys. COMMAND does not show the flag.
const FlagUnwatches Flag = 1 << 19

// FlagValues marks commands whose reply copies stored values. Commands with FlagLinear do not need
// the flag for that. COMMAND does not show the flag.
const FlagValues Flag = 1 << 18

// FlagAllShards marks commands that read the state of every shard, although they are not commands
// on keys. COMMAND does not show the flag.
const FlagAllShards Flag = 1 << 17

// FlagAudit marks commands that change something for all clients. Each call writes a log line with
// its caller. COMMAND does not show the flag.
const FlagAudit Flag = 1 << 31

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

// Names returns the names of the flags in f that COMMAND INFO shows, in a fixed order.
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

// The ACL categories of Redis that commands of this server belong to, and two that Redis does not
// have: @ratelimit and @policy.
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
	CatPolicy
)

// categoryName is a category and its name in ACL rules.
type categoryName struct {
	category Category
	Name     string
}

// CategoryNames lists all ACL categories with their names, in the order of Redis.
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
	{CatPolicy, "policy"},
}

// Names returns the names of the categories in c, without '@', in a fixed order.
func (c Category) Names() []string {
	var names []string
	for _, n := range CategoryNames {
		if c&n.category != 0 {
			names = append(names, n.Name)
		}
	}
	return names
}
