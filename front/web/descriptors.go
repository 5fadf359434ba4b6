package web

import (
	"fmt"
	"io"
	"net/http"

	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/messages"
	"github.com/cellserver/cellserver/rls/wire"
)

// These are the paths that envoyproxy/ratelimit serves over HTTP.
const (
	jsonPath   = "/json"
	healthPath = "/healthcheck"
)

// descriptors serves POST /json: a request of Envoy's rate limit service in JSON. As ratelimit does, it takes any type of
// content, and answers faults of a request with the text of [Server.badRequest].
func (s *Server) descriptors(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.refuse(w, http.StatusMethodNotAllowed, "a request of the rate limit service is a POST")
		return
	}
	body, by, ok := s.message(w, r)
	if !ok {
		return
	}
	m := s.borrow()
	defer s.giveBack(m)
	var err error
	if m.in, err = messages.AppendRequest(m.in[:0], body); err == nil {
		err = wire.Decode(m.in, &m.call.Request)
	}
	if err != nil {
		s.Service.Counts.Refused()
		s.badRequest(w)
		return
	}
	if err := s.Service.Answer(&m.call, by); err != nil {
		s.refuseDescriptors(w, err)
		return
	}
	m.out = m.call.AppendResponse(m.out[:0])
	text, err := messages.AppendJSON(nil, m.out)
	if err != nil {
		panic("web: a response cannot be written as JSON") // impossible: the texts of the rules and the request are UTF-8
	}
	status := http.StatusOK
	if m.call.Answer.Overall == rls.OverLimit {
		status = http.StatusTooManyRequests
	}
	s.counts.add(status)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // fails only if the client has disconnected
}

// message returns the body of a request of a rate limit service, and the client that makes its calls. If ok is false,
// message has sent the response.
func (s *Server) message(w http.ResponseWriter, r *http.Request) (body []byte, by Caller, ok bool) {
	if headerSize(r) > MaxHeader {
		s.refuse(w, http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("the header has more than %d bytes", MaxHeader))
		return nil, nil, false
	}
	body, err := s.readBody(w, r)
	if err != nil {
		s.badRequest(w)
		return nil, nil, false
	}
	user, _, ok := s.user(w, r, true)
	if !ok {
		return nil, nil, false
	}
	by, err = connectionOf(r.Context()).caller(user, s.Open)
	if err != nil {
		s.refuse(w, statusOf(err), err.Error())
		return nil, nil, false
	}
	return body, by, true
}

// badRequest responds to a faulty request as ratelimit does.
func (s *Server) badRequest(w http.ResponseWriter) {
	s.counts.add(http.StatusBadRequest)
	http.Error(w, "Bad Request", http.StatusBadRequest)
}

// refuseDescriptors responds to a request that has failed with err.
func (s *Server) refuseDescriptors(w http.ResponseWriter, err error) {
	switch descriptors.CodeOf(err) {
	case descriptors.InvalidArgument, descriptors.Unknown:
		s.badRequest(w)
	case descriptors.PermissionDenied:
		s.refuse(w, http.StatusForbidden, err.Error())
	default:
		s.refuse(w, http.StatusServiceUnavailable, err.Error())
	}
}

// health serves GET /healthcheck: 200 if the rate limit service can answer requests of the user of r, and otherwise 500, as
// ratelimit does.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if !s.healthy(w, r) {
		return
	}
	s.counts.add(http.StatusOK)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "OK") // fails only if the client has disconnected
}

// healthy reports whether the rate limit service can answer requests of the user of r, which is a GET. Otherwise it has sent
// the response.
func (s *Server) healthy(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		s.refuse(w, http.StatusMethodNotAllowed, "the health is asked for by GET")
		return false
	}
	user, ok := s.certified(r.TLS)
	if !ok && r.Header.Get("Authorization") != "" {
		if user, _, ok = s.login(w, r); !ok {
			return false
		}
	}
	if why := s.NotReady(user); why != "" {
		s.counts.add(http.StatusInternalServerError)
		http.Error(w, why, http.StatusInternalServerError)
		return false
	}
	return true
}
