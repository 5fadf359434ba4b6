package pubsub

import (
	"slices"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
)

// fewTopics is the maximum number of topics that the caller of rulesChanged itself searches for
// subscriptions that a user has lost.
const fewTopics = 4 << 10

// rulesChanged is the RulesChanged hook: it closes the clients of u that are subscribed to topics
// which the new rules of u forbid. before has the old rules. If there are many topics, another
// goroutine does so, because the caller may be an event loop.
func (h *hub) rulesChanged(u *acl.User, before *acl.Rules) {
	if u.Rules().KeepsChannels(before) {
		return
	}
	topics := 0
	for kind := range h.spaces {
		topics += h.spaces[kind].len()
	}
	if topics > fewTopics {
		h.server.Host.Work.Spawn(func() { h.closeListeners(u) })
	} else {
		h.closeListeners(u)
	}
}

// closeListeners closes the clients of u that are subscribed to a topic which the rules of u
// forbid.
func (h *hub) closeListeners(u *acl.User) {
	r := u.Rules()
	for kind := range h.spaces {
		for _, t := range h.spaces[kind].list() {
			if mayListen(r, t.kind, t.name) {
				continue
			}
			for _, cl := range t.clientsOf(u) {
				cl.Kill()
			}
		}
	}
}

// closeIfForbidden closes cl, which has just subscribed to the topic called name, if its user has
// lost the permission since the command was checked. The goroutine that changed the rules may have
// searched the subscribers before cl was among them.
func closeIfForbidden(cl *command.Client, kind topicKind, name []byte) {
	r := cl.User.Load().Rules()
	if r.Unrestricted || mayListen(r, kind, name) {
		return
	}
	if cl.ProxyOf != nil {
		cl = cl.ProxyOf
	}
	cl.Kill()
}

// mayListen reports whether r permits a subscription to the topic called name. One selector of r
// that permits it is enough.
func mayListen(r *acl.Rules, kind topicKind, name []byte) bool {
	return slices.ContainsFunc(r.Selectors(), func(s *acl.Selector) bool {
		if kind == toPattern {
			return s.ChannelPattern(name)
		}
		return s.Channel(name)
	})
}

func (t *topic) clientsOf(u *acl.User) (clients []*command.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.members {
		if m.client.User.Load() == u {
			clients = append(clients, m.client)
		}
	}
	return clients
}
