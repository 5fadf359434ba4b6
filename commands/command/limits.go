package command

// MaxRequests is how many commands are parsed before the first of them runs.
const MaxRequests = 32

// RequestWords is how many arguments a worker has room for without an allocation.
const RequestWords = 256

// KeptRequestWords bounds the room, in arguments, that a worker keeps after a command with more
// than RequestWords of them.
const KeptRequestWords = 4096

// SubscriptionCost returns the memory in bytes that a subscription takes: the name, which is stored
// twice if no other client has subscribed to it, and the entries in maps and lists.
func SubscriptionCost(name []byte) int { return 2*len(name) + 256 }

// MaxReply bounds the bytes of one reply, e.g. of KEYS.
const MaxReply = 64 << 20

// MaxKey bounds the bytes of a key.
const MaxKey = 16 << 10

// KeptPosting is for how many sessions or channels a worker keeps room.
const KeptPosting = 1 << 14

// SubscriptionWork is the work in units of starting or ending one subscription.
const SubscriptionWork = 5

// MaxSubscribed bounds the memory in bytes that the subscriptions of one client may take. Redis has
// no such bound.
const MaxSubscribed = 16 << 20

// MaxPatterns bounds the patterns that one client subscribes to, because each message of any client
// is matched against each of them. Package pubsub also bounds the characters that these patterns
// have between two stars, all together, because only those are searched for at many positions.
// Redis has no such bounds.
const MaxPatterns = 4096
