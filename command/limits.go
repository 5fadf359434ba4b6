package command

// MaxRequests is the maximum number of commands that a worker parses before it runs the first of
// them.
const MaxRequests = 32

// RequestWords is the number of arguments for which a new worker has room without an allocation.
const RequestWords = 256

// KeptRequestWords is the maximum size, in arguments, of the buffer that a worker keeps after a
// batch with more than RequestWords arguments. A larger buffer is freed.
const KeptRequestWords = 4096

// SubscriptionCost returns the memory in bytes that a subscription to name takes: the name, which
// is stored twice if no other client has subscribed to it, and 256 bytes for the entries in maps
// and lists.
func SubscriptionCost(name []byte) int { return 2*len(name) + 256 }

// MaxReply is the maximum length of a reply in bytes, for replies, such as the reply of KEYS, whose
// length depends on what is stored.
const MaxReply = 64 << 20

// MaxKey is the maximum length of a key in bytes.
const MaxKey = 16 << 10

// KeptPosting is the maximum size, in entries, of a buffer for the receivers of messages that a
// worker keeps for reuse. A larger buffer is freed.
const KeptPosting = 1 << 14

// SubscriptionWork is the work of starting or ending one subscription, in the units of
// [MaxLoopWork].
const SubscriptionWork = 5

// MaxSubscribed is the maximum memory, in bytes, that the subscriptions of one client may take.
// Redis has no such bound.
const MaxSubscribed = 16 << 20

// MaxPatterns is the maximum number of patterns that one client may subscribe to. The number is
// bounded because each message of any client is matched against every pattern. Package pubsub also
// bounds the total number of characters that the patterns of a client have between two stars,
// because only such a part of a pattern is searched for at many positions. Redis has no such
// bounds.
const MaxPatterns = 4096
