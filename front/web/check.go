package web

import (
	"errors"
	"net/http"

	"github.com/cellserver/cellserver/front/headers"
	"github.com/cellserver/cellserver/front/use"
	"github.com/cellserver/cellserver/resp"
)

// maxKey is the maximum length of the key of a call in bytes, as docs/policies.md promises it.
const maxKey = 16_000

// check serves /v1/check/. path is the path of the request without decoding.
//
// Faults of the operator, such as an unknown parameter, have a status of their own. A fault that the client of the
// gateway has caused, such as a key that is not an address, is a denial, because a client must not pass by sending a
// bad key.
func (s *Server) check(w http.ResponseWriter, r *http.Request, path string) {
	c, err := parseCheck(path)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if headerSize(r) > MaxHeader {
		s.refuseCheck(w, &c.params, deniedBecause("the header has more than %d bytes", MaxHeader))
		return
	}
	// The user name and password of a check come from the client of the gateway, and are meant for
	// the application behind it.
	user, proven, ok := s.user(w, r, false)
	if !ok {
		return
	}
	if c.params.Hits < 0 && !proven {
		s.refuse(w, http.StatusForbidden, "negative hits need a client certificate")
		return
	}
	m := s.borrow()
	defer s.giveBack(m)
	conn := connectionOf(r.Context())
	o := original{Request: r, gateway: s.Gateway, trusted: s.Trusted, peer: addressOf(conn.RemoteAddr()), rest: c.rest}
	if m.key, err = o.appendKey(m.key[:0], c.params.Key); err == nil && len(m.key) > maxKey {
		err = deniedBecause("the key has more than %d bytes", maxKey)
	}
	if err != nil {
		s.refuseCheck(w, &c.params, err)
		return
	}
	a, err := s.ask(r, user, &use.Call{Policy: []byte(c.policy), Key: m.key, Quantity: c.params.Hits}, m)
	if err != nil {
		s.refuseCheck(w, &c.params, err)
		return
	}
	setFields(w.Header(), &a.Answer, s.Style)
	s.count(&a.Answer)
	if !a.Denied {
		w.WriteHeader(http.StatusOK)
		return
	}
	write(w, c.params.Deny, headers.ProblemType, headers.ProblemOf(&a.Answer, c.params.Deny))
}

// refuseCheck responds to a check that has failed with err. The gateway may pass the response on to its client, so the
// response has only the first word of an error reply.
func (s *Server) refuseCheck(w http.ResponseWriter, p *Params, err error) {
	var (
		f     *fault
		reply resp.Error
	)
	switch {
	case errors.As(err, &f) && f.denied:
		s.deny(w, p.Deny, f.text)
	case errors.As(err, &f):
		s.refuse(w, f.status, f.text)
	case errors.As(err, &reply) && byKey(reply):
		s.deny(w, p.Deny, reply.Word())
	case errors.As(err, &reply):
		s.refuse(w, statusOf(err), reply.Word())
	default:
		s.refuse(w, statusOf(err), "the server cannot decide now")
	}
}
