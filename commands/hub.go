package commands

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
)

// topicKind is one of the namespaces that clients subscribe in.
type topicKind uint8

const (
	toChannel topicKind = iota
	toPattern
	toShard
	topicKinds = 3
)

// hub knows who has subscribed to what. Nobody holds a lock of the whole hub while
// messages are handed out: its maps are locked for a lookup only, and each topic has a
// lock of its own, under which all its subscribers get a message in one order.
type hub struct {
	spaces [topicKinds]space
	memory atomic.Int64 // bytes that subscriptions take
}

// space is the topics of one kind that have subscribers.
type space struct {
	mu     sync.RWMutex
	topics map[string]*topic // guarded by mu
	// all is the same topics for those who look at each; nil after a change, never
	// changed itself.
	all []*topic // guarded by mu
}

// topic is a channel, or a pattern of channels, and its subscribers.
type topic struct {
	kind topicKind
	name []byte
	of   *space

	mu      sync.Mutex
	members []*membership // guarded by mu
	dead    bool          // guarded by mu: nobody is left, and of forgets it
}

// membership is one client's subscription to one topic.
type membership struct {
	topic   *topic
	session *Session
	at      int // index in topic.members, guarded by topic.mu
}

// get returns the topic of that name, or nil.
func (sp *space) get(name []byte) *topic {
	sp.mu.RLock()
	defer sp.mu.RUnlock()
	return sp.topics[string(name)]
}

// len is how many topics there are.
func (sp *space) len() int {
	sp.mu.RLock()
	defer sp.mu.RUnlock()
	return len(sp.topics)
}

// list returns all topics, in no order. The result must not be changed.
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

// open returns the topic of that name, made if there is none.
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

// forget removes a topic that has died.
func (sp *space) forget(t *topic) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	delete(sp.topics, string(t.name))
	sp.all = nil
}

// join subscribes s.
func (h *hub) join(kind topicKind, name []byte, s *Session) *membership {
	sp := &h.spaces[kind]
	for {
		t := sp.open(kind, name)
		t.mu.Lock()
		if t.dead { // it died meanwhile; its place in the map is free now
			t.mu.Unlock()
			continue
		}
		m := &membership{topic: t, session: s, at: len(t.members)}
		t.members = append(t.members, m)
		t.mu.Unlock()
		h.memory.Add(int64(command.SubscriptionCost(name)))
		return m
	}
}

// leave ends a subscription. No message of the topic reaches its session afterwards.
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

// count is how many clients are subscribed to the topic.
func (t *topic) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.members)
}

// subscriptions is what one session has subscribed to.
type subscriptions struct {
	topics [topicKinds]map[string]*membership // used by the feeding goroutine only
	inner  int                                // of the patterns, as parse.InnerLength

	// For others to read, too: how much they take, as command.SubscriptionCost, and how many
	// there are.
	cost   atomic.Int64
	counts [topicKinds]atomic.Int32
}

// subscribed returns how many subscriptions of a kind s has. Any goroutine may call
// it.
func (s *Session) subscribed(kind topicKind) int {
	if subs := s.subs.Load(); subs != nil {
		return int(subs.counts[kind].Load())
	}
	return 0
}

// subscriber reports whether s has any subscription. Any goroutine may call it.
func (s *Session) subscriber() bool {
	subs := s.subs.Load()
	return subs != nil && subs.counts[toChannel].Load()+subs.counts[toPattern].Load()+subs.counts[toShard].Load() > 0
}

// subscribe adds a subscription unless s has it.
func (s *Session) subscribe(kind topicKind, name []byte) {
	subs := s.subs.Load()
	if subs == nil {
		subs = &subscriptions{}
		s.subs.Store(subs)
	}
	if subs.topics[kind][string(name)] != nil {
		return
	}
	if subs.topics[kind] == nil {
		subs.topics[kind] = make(map[string]*membership)
	}
	m := s.engine.hub.join(kind, name, s)
	subs.topics[kind][string(name)] = m
	subs.cost.Add(int64(command.SubscriptionCost(name)))
	if kind == toPattern {
		subs.inner += parse.InnerLength(name)
	}
	subs.counts[kind].Add(1)
}

// unsubscribe ends a subscription if there is one.
func (s *Session) unsubscribe(kind topicKind, name []byte) {
	if subs := s.subs.Load(); subs != nil {
		if m := subs.topics[kind][string(name)]; m != nil {
			s.end(subs, m)
		}
	}
}

// end ends one of the subscriptions of s.
func (s *Session) end(subs *subscriptions, m *membership) {
	name, kind := m.topic.name, m.topic.kind
	s.engine.hub.leave(m)
	delete(subs.topics[kind], string(name))
	subs.cost.Add(-int64(command.SubscriptionCost(name)))
	if kind == toPattern {
		subs.inner -= parse.InnerLength(name)
	}
	subs.counts[kind].Add(-1)
}

// names returns what s has subscribed to, in no order.
func (s *Session) names(kind topicKind) [][]byte {
	subs := s.subs.Load()
	if subs == nil {
		return nil
	}
	names := make([][]byte, 0, len(subs.topics[kind]))
	for _, m := range subs.topics[kind] {
		names = append(names, m.topic.name)
	}
	return names
}

// unsubscribeSome ends at most so many subscriptions of s, without a word to it, and
// reports whether there are more.
func (s *Session) unsubscribeSome(most int) (more bool) {
	subs := s.subs.Load()
	if subs == nil {
		return false
	}
	for kind := range subs.topics {
		for _, m := range subs.topics[kind] {
			if most--; most < 0 {
				return true
			}
			s.end(subs, m)
		}
	}
	s.subs.Store(nil)
	return false
}

// unsubscribeAll ends every subscription of s, without a word to it.
func (s *Session) unsubscribeAll() {
	for s.unsubscribeSome(command.SliceWords) {
	}
}
