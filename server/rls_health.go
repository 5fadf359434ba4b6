package server

import (
	"context"
	"time"

	"github.com/cellserver/cellserver/front/use"
)

// loopsMayTake is the time in which the event loops have to answer a check of the health service.
const loopsMayTake = time.Second

// serviceNotReady returns why the service should get no calls, or "" if it should.
func (s *Server) serviceNotReady() string {
	ctx, cancel := context.WithTimeout(context.Background(), loopsMayTake)
	defer cancel()
	switch {
	case s.engine.ChangesRefused() != "":
		return "refuses-changes"
	case !s.rulesLoaded():
		return noRules
	}
	return s.notReady(ctx)
}

// rulesLoaded reports whether there are rules: those of rls-config if it is set, and otherwise limits of Limitador. With
// rls-health-needs-rules files of rls-config without a rule do not count.
func (s *Server) rulesLoaded() bool {
	if s.config.Path("rls-config") == "" {
		return s.policies.registry.Limits() != nil
	}
	rules := s.rulesInForce()
	return rules != nil && (rules.Len() > 0 || !s.config.Yes("rls-health-needs-rules"))
}

// noRules is the reason of [Server.serviceNotReady] for a server without rules.
const noRules = "no-rules"

// healthNotReady does what serviceNotReady does, for GET /healthcheck by the user; "" stands for a request without a user of its
// own. A server that may start without rules is healthy without them, as ratelimit is, unless rls-health-needs-rules is yes:
// otherwise an orchestrator would restart it while it waits for them.
func (s *Server) healthNotReady(user string) string {
	why := s.serviceNotReady()
	if why == noRules && !s.config.Yes("rls-config-required") && !s.config.Yes("rls-health-needs-rules") {
		why = ""
	}
	switch {
	case why != "":
		return why
	case user != "":
		return s.userRefused(user, true)
	}
	return s.frontUserRefused("http")
}

// callsRefused does what serviceNotReady does, for the health service of gRPC, which also says that the user of calls can make
// none.
func (s *Server) callsRefused() string {
	if why := s.serviceNotReady(); why != "" {
		return why
	}
	return s.frontUserRefused("rls")
}

// frontUserRefused returns why no call without credentials to the front, http or rls, can be decided, or "" if some can. On a port
// that logs users in by certificates each caller may have another user, so its users are not looked at.
func (s *Server) frontUserRefused(front string) string {
	if s.config.Yes(front+"-tls") && s.config.Value("tls-auth-clients-user") != "off" {
		return ""
	}
	return s.userRefused(s.frontUser(front + "-user"))
}

// userRefused returns why no call of the user can be decided, or "" if some can. ok is false if there is no user.
func (s *Server) userRefused(name string, ok bool) string {
	user, found := s.engine.Users.ByName(name)
	decide := s.engine.Commands.Lookup([]byte(use.Command))
	switch {
	case !ok, !found:
		return "no-user"
	case decide == nil, !decide.AllowedSomewhere(user.Rules()):
		return "no-permission"
	}
	return ""
}
