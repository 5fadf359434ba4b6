package command

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

// FlagLinear is set on commands that may go through all elements of the collection that
// they name: a transaction that has one is as much work as that is large. Those that take
// elements from an end, and mostly few, are not. No client sees the flag.
const FlagLinear Flag = 1 << 30

// FlagFence is set on commands that may wait, that change what the client is, or that look at
// what the commands before them have left anywhere but under a key. Those are to be over
// before it runs, where a Remote decides. COMMAND does not show it.
const FlagFence Flag = 1 << 29

// FlagLocal is set on commands that reach no key: they are served where the keys are those of
// a Remote, too. COMMAND does not show it.
const FlagLocal Flag = 1 << 28

// FlagEveryKey is set on commands that show or delete keys which they do not name. COMMAND
// does not show it.
const FlagEveryKey Flag = 1 << 27

// FlagDecides is set on commands that answer with the decision of a limiter. COMMAND does not
// show it.
const FlagDecides Flag = 1 << 26

// FlagConnection is set on commands about the connection that sends them: what it is, what it
// is sent, what it has queued or watches. COMMAND does not show it.
const FlagConnection Flag = 1 << 25

// FlagSyncing is set on commands that run although the state is not there yet, as those with
// FlagLoading do, if that is so because the server copies the state of its primary. COMMAND does
// not show it.
const FlagSyncing Flag = 1 << 24

// FlagAudit is set on commands that change what is there for everybody: the log says who
// has called them. COMMAND does not show it.
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

// The ACL categories of Redis that our commands fall in, and our own @ratelimit and @policy.
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

// categoryName is a category and what ACL calls it.
type categoryName struct {
	category Category
	Name     string
}

// CategoryNames are the ACL categories and their names, in the order of Redis.
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
