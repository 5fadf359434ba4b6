package pubsub

import (
	"slices"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/commands/command"
)

// fewTopics is the number of topics up to which the loop itself looks for subscriptions that a
// user has lost.
const fewTopics = 4 << 10

// rulesChanged closes the clients of a user that are subscribed to topics which its new rules
// forbid. If there are many topics it does so on another goroutine, because the caller may be on
// a loop.
func (h *hub) rulesChanged(u *acl.User, before *acl.Rules) {
	if u.Rules().KeepsChannels(before) {
		return
	}
	topics := 0
	for kind := range h.spaces {
		topics += h.spaces[kind].len()
	}
	if topics > fewTopics {
		h.server.Host.Spawn(func() { h.closeListeners(u) })
	} else {
		h.closeListeners(u)
	}
}

// closeListeners closes the clients of a user that are subscribed to a forbidden topic.
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

// closeIfForbidden closes a client that has just subscribed to a topic if its user has lost the
// permission since the command was checked. The goroutine that changed the rules may have looked
// for subscribers before this one was added.
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

// mayListen reports whether a selector of the rules allows a subscription to a topic.
func mayListen(r *acl.Rules, kind topicKind, name []byte) bool {
	return slices.ContainsFunc(r.Selectors(), func(s *acl.Selector) bool {
		if kind == toPattern {
			return s.ChannelPattern(name)
		}
		return s.Channel(name)
	})
}

// clientsOf returns the subscribers that are clients of u.
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
