package command

// MaxRequests is how many commands are split before the first of them runs.
const MaxRequests = 32

// RequestWords is how many arguments a worker has room for without allocating, and
// KeptRequestWords how many it may keep room for after a wider command.
const RequestWords = 256

// KeptRequestWords is for how many words a worker keeps room.
const KeptRequestWords = 4096

// SubscriptionCost is the memory that a subscription takes: the name, twice if nobody
// else has it, and the entries of maps and lists.
func SubscriptionCost(name []byte) int { return 2*len(name) + 256 }

// MaxReply bounds the bytes of one reply.
const MaxReply = 64 << 20 // the longest single reply, e.g. of KEYS

// MaxKey bounds the bytes of a key.
const MaxKey = 16 << 10 // the longest key

// KeptPosting is for how many sessions or topics a worker keeps room.
const KeptPosting = 1 << 14

// SubscriptionWork is the work of beginning or ending one subscription.
const SubscriptionWork = 5

// MaxSubscribed is how much memory the subscriptions of a client may take, and
// MaxPatterns how many of them may be patterns, since each of those is looked at for
// every message of anybody. maxInner is what these may have between two stars
// altogether, in characters, since only that is looked for in many places. Redis has
// no bound here.
const MaxSubscribed = 16 << 20

// MaxPatterns bounds the patterns that one client subscribes to.
const MaxPatterns = 4096
