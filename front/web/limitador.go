package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/rls"
)

// These are the paths of Limitador over HTTP.
const (
	statusPath = "/status"
	limitsPath = "/limits/" // and a namespace
)

// limitsWays are the paths of requests to Limitador, with what they are for.
var limitsWays = map[string]descriptors.Way{
	"/check": descriptors.Check, "/report": descriptors.Report, "/check_and_report": descriptors.Whole,
}

// draftHeaders is the value of response_headers with which an answer has header fields.
const draftHeaders = "DRAFT_VERSION_03"

// limitsRequest is the body of a request to Limitador. All fields but response_headers are required.
type limitsRequest struct {
	Namespace       *string           `json:"namespace"`
	Values          map[string]string `json:"values"`
	Delta           *uint64           `json:"delta"`
	ResponseHeaders *string           `json:"response_headers"`
}

// errLimitsRequest says that a body is no request to Limitador.
var errLimitsRequest = errors.New("the body is no JSON object with a namespace, values that are texts, and a delta from 0 to 2^63-1")

// decodeLimits decodes the body of a request to Limitador, and sets to to the request. As Limitador does, it ignores
// unknown fields. headers says that the answer is to have header fields.
func decodeLimits(body []byte, to *rls.Request) (headers bool, err error) {
	var is limitsRequest
	if !utf8.Valid(body) || json.Unmarshal(body, &is) != nil || is.Namespace == nil || is.Values == nil || is.Delta == nil || *is.Delta > math.MaxInt64 {
		return false, errLimitsRequest
	}
	*to = rls.Request{Domain: []byte(*is.Namespace), Descriptors: []rls.Descriptor{{}}, Hits: *is.Delta}
	for key, value := range is.Values {
		// The decoder replaces half a surrogate pair, which would make different values equal.
		if strings.ContainsRune(key+value, utf8.RuneError) {
			return false, errLimitsRequest
		}
		to.Descriptors[0].Entries = append(to.Descriptors[0].Entries, rls.Entry{Key: []byte(key), Value: []byte(value)})
	}
	return is.ResponseHeaders != nil && *is.ResponseHeaders == draftHeaders, nil
}

// limits serves a request to Limitador: POST /check, /report and /check_and_report.
func (s *Server) limits(w http.ResponseWriter, r *http.Request, way descriptors.Way) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.refuse(w, http.StatusMethodNotAllowed, "a request about limits is a POST")
		return
	}
	if !isJSON(r) {
		s.refuse(w, http.StatusUnsupportedMediaType, "the body of a request about limits is application/json")
		return
	}
	body, by, ok := s.message(w, r)
	if !ok {
		return
	}
	m := s.borrow()
	defer s.giveBack(m)
	headers, err := decodeLimits(body, &m.call.Request)
	if err != nil {
		s.Service.Counts.Refused()
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if err := s.Service.AnswerLimits(&m.call, way, m.call.Request.Hits, headers, by); err != nil {
		s.refuse(w, limitsStatus(err), err.Error())
		return
	}
	for _, f := range m.call.Limited.Fields() {
		w.Header()[f.Name] = []string{string(f.Value)}
	}
	if m.call.Answer.Overall == rls.OverLimit {
		s.counts.add(http.StatusTooManyRequests)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "Too many requests") // the client may be gone
		return
	}
	s.counts.add(http.StatusOK)
	write(w, http.StatusOK, "application/json", nil)
}

// limitsStatus returns the status for an error of a request to Limitador.
func limitsStatus(err error) int {
	if code := descriptors.CodeOf(err); code == descriptors.InvalidArgument || code == descriptors.Unknown {
		return http.StatusBadRequest
	}
	return statusOf(err)
}

// limit is a limit of a file in JSON.
type limit struct {
	ID         *string  `json:"id"`
	Namespace  string   `json:"namespace"`
	Max        int64    `json:"max_value"`
	Seconds    int64    `json:"seconds"`
	Name       *string  `json:"name"`
	Conditions []string `json:"conditions"`
	Variables  []string `json:"variables"`
}

// mayList returns an error unless the user may call RL.RULES.
func (s *Server) mayList(r *http.Request, user string) error {
	by, err := connectionOf(r.Context()).caller(user, s.Open)
	if err != nil {
		return err
	}
	reply, err := by.Do([]byte("*3\r\n$8\r\nRL.RULES\r\n$5\r\nCOUNT\r\n$1\r\n1\r\n"), 1, nil)
	if err != nil {
		return err //nolint:wrapcheck // its text is the answer
	}
	if text, failed := bytes.CutPrefix(reply, []byte{'-'}); failed {
		line, _, _ := bytes.Cut(text, []byte("\r\n"))
		return resp.Error(line)
	}
	return nil
}

// showLimits serves GET /limits/NAMESPACE, for users that may call RL.RULES: the limits of the namespace in the order of
// the file.
func (s *Server) showLimits(w http.ResponseWriter, r *http.Request, namespace string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		s.refuse(w, http.StatusMethodNotAllowed, "limits are those of the file of limitador-limits, which requests cannot change")
		return
	}
	name, err := url.PathUnescape(namespace)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, "the namespace is not percent-encoded")
		return
	}
	user, _, ok := s.user(w, r, true)
	if !ok {
		return
	}
	if err := s.mayList(r, user); err != nil {
		s.refuse(w, statusOf(err), err.Error())
		return
	}
	list := []limit{}
	for _, is := range s.Service.Limits().Namespace([]byte(name)) {
		list = append(list, limitOf(is))
	}
	s.counts.add(http.StatusOK)
	write(w, http.StatusOK, "application/json", list)
}

func limitOf(is *limitador.Limit) limit {
	l := limit{is.ID, is.Namespace, is.Max, is.Seconds, is.Name, []string{}, []string{}}
	for _, e := range is.Conditions {
		l.Conditions = append(l.Conditions, e.String())
	}
	for _, e := range is.Variables {
		l.Variables = append(l.Variables, e.String())
	}
	return l
}

// status serves GET /status, whose answer is that of [Server.health] with the body of Limitador.
func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	if s.healthy(w, r) {
		s.counts.add(http.StatusOK)
		write(w, http.StatusOK, "application/json", nil)
	}
}

// serveLimits serves a path of Limitador. It returns false if there is nothing at the path.
func (s *Server) serveLimits(w http.ResponseWriter, r *http.Request, path string) bool {
	if s.Service == nil || s.Service.Limits == nil || s.Service.Limits() == nil {
		return false
	}
	way, known := limitsWays[path]
	namespace, list := strings.CutPrefix(path, limitsPath)
	switch {
	case known:
		s.limits(w, r, way)
	case list:
		s.showLimits(w, r, namespace)
	case path == statusPath:
		s.status(w, r)
	default:
		return false
	}
	return true
}
