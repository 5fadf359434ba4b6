package server

import (
	"context"
	"time"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/session"
)

// loopsAnswer returns why an event loop does not answer before ctx ends, or "" if all event loops
// answer. A transport without event loops always answers.
func (s *Server) loopsAnswer(ctx context.Context) string {
	looped, ok := s.transport.(interface {
		Answer(ctx context.Context) error
	})
	if !ok {
		return ""
	}
	if err := looped.Answer(ctx); err != nil {
		return err.Error()
	}
	return ""
}

// heldTime is the time for which an exclusive command may block the store before the server counts
// as not ready.
const heldTime = time.Second

// holdsLong reports whether the exclusive command r has blocked the store for heldTime or longer,
// or so long that other clients get BUSY errors.
func holdsLong(r session.Running) bool { return r.Busy || r.For >= heldTime }

// notReady returns, in one word, why the server should get no commands, or "" if it should. It
// waits for the event loops to answer until ctx ends.
func (s *Server) notReady(ctx context.Context) string {
	running, holds := s.engine.Running()
	switch {
	case s.engine.Loading():
		return "loading"
	case s.engine.Draining.Load():
		return "draining"
	case s.persistence.Refuses():
		return "misconf"
	case s.replicator.refuses():
		return "primary-refused"
	case holds && holdsLong(running):
		return "busy"
	}
	if why := s.unserved(); why != "" {
		return why
	}
	if s.loopsAnswer(ctx) != "" {
		return "stalled"
	}
	return ""
}

// unserved returns, in one word, why calls of limiters cannot be served, or "" if they can. With
// the option ready-without-store, a store that does not answer is a reason only if fail-policy is
// closed for some keys. A store that answers is a reason, too, until its policies were read: see
// awaited.
func (s *Server) unserved() string {
	switch halts, node := s.engine.Halts.Load(), s.engine.Options.Node; {
	case halts&command.HaltNoReplicas != 0 && (node == nil || !node.EnoughReplicas()):
		return "no-replicas"
	case halts&command.HaltMasterDown != 0:
		return "no-primary"
	case s.remote == nil:
		return ""
	}
	switch i := (remoteState{Info: s.remote.Info()}); {
	case i.away() && s.config.Yes("ready-without-store") && !s.failsClosed():
		return ""
	case i.away():
		return "no-store"
	case s.policies.awaited():
		return "no-policies"
	}
	return ""
}

// failsClosed reports whether fail-policy is closed for some keys, so that their calls get an error
// while the store does not answer.
func (s *Server) failsClosed() bool {
	policies := s.config.FailPolicies()
	if policies[""] == "" { // if there is no policy for all keys, it is the default: closed
		return true
	}
	for _, policy := range policies {
		if policy == "closed" {
			return true
		}
	}
	return false
}
