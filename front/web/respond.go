package web

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/cellserver/cellserver/front/headers"
	"github.com/cellserver/cellserver/resp"
)

// setFields sets the header fields of an answer, in the spelling of the draft.
func setFields(h http.Header, a *headers.Answer, s headers.Style) {
	for _, f := range headers.Append(nil, a, s) {
		h[f.Name] = []string{f.Value}
	}
}

// protect sets the header fields that all responses have.
func protect(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// write sends a response with a JSON body of the type given.
func write(w http.ResponseWriter, status int, kind string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic("web: a response cannot be written as JSON") // encoding the types of this package never fails
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // an error means that the client has disconnected, so nothing can be done
}

// refuse sends a problem that is not a denial, and counts the response.
func (s *Server) refuse(w http.ResponseWriter, status int, detail string) {
	s.counts.add(status)
	sendProblem(w, status, detail)
}

// deny sends the response to a request that is denied without a decision, and counts the denial. status is the status
// of denials, and detail explains the reason.
func (s *Server) deny(w http.ResponseWriter, status int, detail string) {
	s.counts.add(http.StatusTooManyRequests)
	sendProblem(w, status, detail)
}

// sendProblem sends a response with the status, and a problem with the detail as its body.
func sendProblem(w http.ResponseWriter, status int, detail string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="cellserver", charset="UTF-8"`)
	}
	write(w, status, headers.ProblemType, headers.Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail,
	})
}

// statuses maps the first word of an error reply to the status of the response. For any other word the status is 503,
// because the server cannot decide now.
var statuses = map[string]int{
	"ERR":       http.StatusBadRequest,
	"NOADDRESS": http.StatusBadRequest,
	"NOAUTH":    http.StatusUnauthorized,
	"WRONGPASS": http.StatusUnauthorized,
	"NOPERM":    http.StatusForbidden,
	"DENIED":    http.StatusForbidden,
	"NOPOLICY":  http.StatusNotFound,
	"WRONGTYPE": http.StatusConflict,
}

// byKey reports whether a client can cause the error by its choice of the key.
func byKey(r resp.Error) bool { return r.Word() == "NOADDRESS" || r.Word() == "WRONGTYPE" }

// statusOf returns the status for an error with which a call has failed. An error that is no error reply says
// that the session has ended.
func statusOf(err error) int {
	var r resp.Error
	if !errors.As(err, &r) || r == resp.ErrMaxClients {
		return http.StatusServiceUnavailable
	}
	if r == resp.ErrInternal {
		return http.StatusInternalServerError
	}
	if status, known := statuses[r.Word()]; known {
		return status
	}
	return http.StatusServiceUnavailable
}
