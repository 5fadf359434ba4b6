package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/cellserver/cellserver/front/headers"
	"github.com/cellserver/cellserver/front/use"
)

// usePath is the path of a call.
const usePath = "/v1/use"

// result is the body of the response to a call. If the call is denied, it includes the fields of
// the problem.
type result struct {
	*headers.Problem
	Allowed      bool  `json:"allowed"`
	Limit        int64 `json:"limit"`
	Remaining    int64 `json:"remaining"`
	Missing      int64 `json:"missing"`
	RetryAfterMs int64 `json:"retryAfterMs"`
	ResetAfterMs int64 `json:"resetAfterMs"`
}

// use serves POST /v1/use.
func (s *Server) use(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.refuse(w, http.StatusMethodNotAllowed, "a call is a POST")
		return
	}
	if headerSize(r) > MaxHeader {
		s.refuse(w, http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("the header has more than %d bytes", MaxHeader))
		return
	}
	if !isJSON(r) {
		s.refuse(w, http.StatusUnsupportedMediaType, "the body of a call is application/json")
		return
	}
	body, err := s.readBody(w, r)
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		s.refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body of a call has at most %d bytes", MaxBody))
		return
	} else if err != nil {
		s.refuse(w, http.StatusBadRequest, "the body of the call is not complete")
		return
	}
	c, err := decodeCall(body)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	user, proven, ok := s.user(w, r, true)
	if !ok {
		return
	}
	if c.needsProof() && !proven {
		s.refuse(w, http.StatusForbidden, "force and negative quantities need a password or a client certificate")
		return
	}
	m := s.borrow()
	defer s.giveBack(m)
	a, err := s.ask(r, user, &c.Call, m)
	if err != nil {
		s.refuse(w, statusOf(err), err.Error())
		return
	}
	b := &a.Binding
	answered := result{
		Allowed: !a.Denied, Limit: b.Limit, Remaining: b.Remaining, Missing: a.missing,
		RetryAfterMs: b.RetryMillis, ResetAfterMs: b.ResetMillis,
	}
	setFields(w.Header(), &a.Answer, s.Style)
	s.count(&a.Answer)
	if !a.Denied {
		write(w, http.StatusOK, "application/json", answered)
		return
	}
	p := headers.ProblemOf(&a.Answer, http.StatusTooManyRequests)
	answered.Problem = &p
	write(w, http.StatusTooManyRequests, headers.ProblemType, answered)
}

// isJSON reports whether the body of r is declared as JSON. A browser sends this type from a page of another origin only
// after a preflight request, which this server never answers.
func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// readBody reads the body of a request, which is not being answered meanwhile. After an error, such as that of a body that
// does not come in time, a connection of HTTP/1.1 is closed, since the rest of the body would be its next request.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	s.answering(r.Context(), false)
	defer s.answering(r.Context(), true)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	return body, err //nolint:wrapcheck // the callers have texts of their own
}

// call is a use.Call that is decoded from a body.
type call struct{ use.Call }

// needsProof reports whether only a client with a proven user may make the call. That is so for a
// call that takes units beyond the limit or returns units.
func (c *call) needsProof() bool { return c.Mode == "FORCE" || c.Quantity < 0 }

// errNoJSON is the error of a body that is not valid JSON.
var errNoJSON = errors.New("the body is not valid JSON")

// decodeCall decodes the body of a call: one JSON object. Each field must be known, occur once, and be neither an
// object nor an array. policy and key are required. The error is for the client.
func decodeCall(body []byte) (call, error) {
	if !utf8.Valid(body) {
		return call{}, errors.New("the body is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return call{}, errors.New("the body is no JSON object")
	}
	c := call{use.Call{Quantity: 1}}
	seen := map[string]bool{}
	for d.More() {
		name, ok := token[string](d)
		if !ok {
			return call{}, errNoJSON
		}
		if seen[name] {
			return call{}, fmt.Errorf("the field %q is there twice", name)
		}
		seen[name] = true
		if err := c.decode(d, name); err != nil {
			return call{}, err
		}
	}
	if _, err := d.Token(); err != nil {
		return call{}, errNoJSON
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return call{}, errors.New("the body has more than one JSON object")
	}
	for _, name := range []string{"policy", "key"} {
		if !seen[name] {
			return call{}, fmt.Errorf("the field %q is missing", name)
		}
	}
	return c, nil
}

// decode decodes the field called name. The value is the next token of d.
func (c *call) decode(d *json.Decoder, name string) error {
	mode, known := modes[name]
	switch {
	case known:
		on, ok := token[bool](d)
		if !ok {
			return fmt.Errorf("the field %q is no boolean", name)
		}
		if on && c.Mode != "" {
			return errors.New("peek, partial and force exclude each other")
		}
		if on {
			c.Mode = mode
		}
		return nil
	case name == "quantity":
		n, ok := token[json.Number](d)
		q, err := parseInteger(n.String())
		if !ok || err != nil {
			return fmt.Errorf("the field %q is no integer", name)
		}
		c.Quantity = q
		return nil
	case name != "policy" && name != "key" && name != "member":
		return fmt.Errorf("there is no field %q", name)
	}
	text, ok := token[string](d)
	if !ok {
		return fmt.Errorf("the field %q is no string", name)
	}
	// The decoder replaces half a surrogate pair by U+FFFD, which would make different keys equal.
	if strings.ContainsRune(text, utf8.RuneError) {
		return fmt.Errorf("the field %q has U+FFFD or half a surrogate pair", name)
	}
	switch name {
	case "policy":
		c.Policy = []byte(text)
	case "key":
		if len(text) > maxKey {
			return fmt.Errorf("the key has more than %d bytes", maxKey)
		}
		c.Key = []byte(text)
	case "member":
		c.Member = text
	}
	return nil
}

// modes maps the name of each boolean field to the mode of RL.USE.
var modes = map[string]string{"peek": "PEEK", "partial": "PARTIAL", "force": "FORCE"}

// token returns the next token of d. ok is false if it has another type, or the body is not valid.
func token[T any](d *json.Decoder) (value T, ok bool) {
	t, err := d.Token()
	if err != nil {
		return value, false
	}
	value, ok = t.(T)
	return value, ok
}
