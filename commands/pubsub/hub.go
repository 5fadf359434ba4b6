package pubsub

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/resp"
)

const (
	// maxInner is the maximum sum of [glob.InnerLength] over the patterns of one client. It bounds
	// the time that matching takes.
	maxInner = 1024
	// maxChannel is the maximum length of the name of a channel, in bytes.
	maxChannel = 4 << 10
)

const (
	errManySubscriptions resp.Error = "ERR too many subscriptions"
	errChannelTooLong    resp.Error = "ERR channel name is too long, at most 4096 bytes"
)

// topicKind is one of the namespaces of subscriptions: channels, patterns of channels, and shard
// channels.
type topicKind uint8

const (
	toChannel topicKind = iota
	toPattern
	toShard
	topicKinds = 3
)

// hubOf returns the hub of the server. The running command must be one of this group.
func hubOf(c *command.Call) *hub { return command.ServerState[hub](c) }

// hub has all subscriptions. No lock covers the whole hub while messages are delivered: the map of
// a space is locked only for a lookup, and each topic has its own lock, under which all its
// subscribers get the messages in the same order.
type hub struct {
	server *command.Server
	slot   command.Slot
	spaces [topicKinds]space
	memory atomic.Int64 // bytes that all subscriptions take
}

// space has the topics of one kind.
type space struct {
	mu     sync.RWMutex
	topics map[string]*topic // the topics by name; guarded by mu
	// all has the topics of the map as a slice, for iteration. A change of the map sets all to nil,
	// and list makes a new slice. The elements of a slice never change.
	all []*topic // guarded by mu
}

// topic is a channel, or a pattern of channels, with its subscribers.
type topic struct {
	kind topicKind
	name []byte
	of   *space

	mu      sync.Mutex
	members []*membership // the subscriptions to the topic; guarded by mu
	dead    bool          // the last subscriber has left, and the topic is removed from its space; guarded by mu
}

// membership is the subscription of one client to one topic.
type membership struct {
	topic  *topic
	client *command.Client
	at     int // the index in topic.members, guarded by topic.mu
}

func (sp *space) get(name []byte) *topic {
	sp.mu.RLock()
	defer sp.mu.RUnlock()
	return sp.topics[string(name)]
}

func (sp *space) len() int {
	sp.mu.RLock()
	defer sp.mu.RUnlock()
	return len(sp.topics)
}

// list returns all topics in no particular order. The caller must not change the result.
func (sp *space) list() []*topic {
	sp.mu.RLock()
	all, n := sp.all, len(sp.topics)
	sp.mu.RUnlock()
	if all != nil || n == 0 {
		return all
	}
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.all == nil {
		sp.all = make([]*topic, 0, len(sp.topics))
		for _, t := range sp.topics {
			sp.all = append(sp.all, t)
		}
	}
	return sp.all
}

// open returns the topic called name. If there is none, open creates a topic of kind.
func (sp *space) open(kind topicKind, name []byte) *topic {
	if t := sp.get(name); t != nil {
		return t
	}
	sp.mu.Lock()
	defer sp.mu.Unlock()
	t := sp.topics[string(name)]
	if t == nil {
		t = &topic{kind: kind, name: slices.Clone(name), of: sp}
		if sp.topics == nil {
			sp.topics = make(map[string]*topic)
		}
		sp.topics[string(name)] = t
		sp.all = nil
	}
	return t
}

// forget removes t, which is dead, from the space.
func (sp *space) forget(t *topic) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	delete(sp.topics, string(t.name))
	sp.all = nil
}

// join adds cl to the subscribers of the topic called name, which it creates if necessary, and
// returns the membership.
func (h *hub) join(kind topicKind, name []byte, cl *command.Client) *membership {
	sp := &h.spaces[kind]
	for {
		t := sp.open(kind, name)
		t.mu.Lock()
		if t.dead { // the topic has been removed from the map meanwhile
			t.mu.Unlock()
			continue
		}
		m := &membership{topic: t, client: cl, at: len(t.members)}
		t.members = append(t.members, m)
		t.mu.Unlock()
		h.memory.Add(int64(command.SubscriptionCost(name)))
		return m
	}
}

// leave ends the subscription m. After it returns, the client gets no more messages of the topic. A
// topic without subscribers is removed.
func (h *hub) leave(m *membership) {
	t := m.topic
	h.memory.Add(-int64(command.SubscriptionCost(t.name)))
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.members) - 1
	t.members[m.at] = t.members[last]
	t.members[m.at].at = m.at
	t.members[last] = nil
	t.members = t.members[:last]
	if cap(t.members) > 64 && last < cap(t.members)/4 {
		t.members = slices.Clone(t.members)
	}
	if last == 0 {
		t.dead = true
		t.of.forget(t)
	}
}

func (t *topic) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.members)
}

// subscriptions has all subscriptions of one client.
type subscriptions struct {
	topics [topicKinds]map[string]*membership // the subscriptions of each kind by name; used by the feeding goroutine only
	inner  int                                // the sum of glob.InnerLength of the patterns; used by the feeding goroutine only

	// cost is the memory of all subscriptions in bytes, as command.SubscriptionCost computes it,
	// and counts their numbers by kind. Any goroutine may read both.
	cost   atomic.Int64
	counts [topicKinds]atomic.Int32
}

// of returns the subscriptions of cl, or nil if cl has never had one. Any goroutine may call it.
func (h *hub) of(cl *command.Client) *subscriptions {
	subs, _ := h.slot.OfClient(cl).(*subscriptions)
	return subs
}

// subscribed returns the number of subscriptions of kind that cl has. Any goroutine may call it.
func (h *hub) subscribed(cl *command.Client, kind topicKind) int {
	if subs := h.of(cl); subs != nil {
		return int(subs.counts[kind].Load())
	}
	return 0
}

// subscribe adds a subscription of cl to the topic called name. It does nothing if cl has this
// subscription.
func (h *hub) subscribe(cl *command.Client, kind topicKind, name []byte) {
	subs := command.ClientState[subscriptions](cl, h.slot)
	if subs.topics[kind][string(name)] != nil {
		return
	}
	if subs.topics[kind] == nil {
		subs.topics[kind] = make(map[string]*membership)
	}
	m := h.join(kind, name, cl)
	subs.topics[kind][string(name)] = m
	subs.cost.Add(int64(command.SubscriptionCost(name)))
	if kind == toPattern {
		subs.inner += glob.InnerLength(name)
	}
	subs.counts[kind].Add(1)
	h.count(cl, 1)
}

// count adds n, which may be negative, to the number of subscriptions of cl. It sets MarkListening
// of cl if the result is above 0, and clears it otherwise.
func (h *hub) count(cl *command.Client, n int32) {
	cl.Mark(command.MarkListening, cl.Subscriptions.Add(n) > 0)
}

// unsubscribe ends the subscription of cl to the topic called name, if cl has it.
func (h *hub) unsubscribe(cl *command.Client, kind topicKind, name []byte) {
	if subs := h.of(cl); subs != nil {
		if m := subs.topics[kind][string(name)]; m != nil {
			h.end(cl, subs, m)
		}
	}
}

// end ends the subscription m of cl. subs has all subscriptions of cl.
func (h *hub) end(cl *command.Client, subs *subscriptions, m *membership) {
	name, kind := m.topic.name, m.topic.kind
	h.leave(m)
	delete(subs.topics[kind], string(name))
	subs.cost.Add(-int64(command.SubscriptionCost(name)))
	if kind == toPattern {
		subs.inner -= glob.InnerLength(name)
	}
	subs.counts[kind].Add(-1)
	h.count(cl, -1)
}

// names returns the names of the topics of kind to which cl is subscribed, in no particular order.
func (h *hub) names(cl *command.Client, kind topicKind) [][]byte {
	subs := h.of(cl)
	if subs == nil {
		return nil
	}
	names := make([][]byte, 0, len(subs.topics[kind]))
	for _, m := range subs.topics[kind] {
		names = append(names, m.topic.name)
	}
	return names
}

// unsubscribeSome ends up to most subscriptions of cl without a reply, and reports whether cl has
// more.
func (h *hub) unsubscribeSome(cl *command.Client, most int) (more bool) {
	subs := h.of(cl)
	if subs == nil {
		return false
	}
	for kind := range subs.topics {
		for _, m := range subs.topics[kind] {
			if most--; most < 0 {
				return true
			}
			h.end(cl, subs, m)
		}
	}
	subs.topics = [topicKinds]map[string]*membership{} // the maps are replaced, since maps never shrink
	return false
}

// unsubscribeAll ends all subscriptions of cl without a reply.
func (h *hub) unsubscribeAll(cl *command.Client) {
	for h.unsubscribeSome(cl, command.SliceWords) {
	}
}

// reset is the Reset hook: it ends up to command.SliceWords subscriptions of the client of c, and
// reports whether the client has more.
func (h *hub) reset(c *command.Call) (more bool) {
	return h.unsubscribeSome(c.Client, command.SliceWords)
}

// closed is the Closed hook: it ends the subscriptions of the disconnected client cl. If there are
// more than 256, another goroutine ends them.
func (h *hub) closed(cl *command.Client) {
	const few = 256
	if cl.Subscriptions.Load() <= few {
		h.unsubscribeAll(cl)
		return
	}
	h.server.Host.Work.Spawn(func() { h.unsubscribeAll(cl) })
}

// describe is the Describe hook: it adds the fields of CLIENT LIST about subscriptions to d.
func (h *hub) describe(cl *command.Client, d *command.Description) {
	if subs := h.of(cl); subs != nil {
		d.Channels, d.Patterns, d.ShardChannels = h.subscribed(cl, toChannel), h.subscribed(cl, toPattern), h.subscribed(cl, toShard)
		d.Memory += subs.cost.Load()
	}
}

// figures returns the metrics with the numbers of channels, patterns and shard channels that have
// subscribers.
func figures() []figure.Figure {
	in := func(kind topicKind, field string) figure.Figure {
		return figure.Shown("Stats", field, command.Counted(func(h *hub) int64 { return int64(h.spaces[kind].len()) }))
	}
	return []figure.Figure{in(toChannel, "pubsub_channels"), in(toPattern, "pubsub_patterns"), in(toShard, "pubsubshard_channels")}
}
