package report

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/cellserver/cellserver/acl"
)

const (
	apiPath = "/api/v1/"
	// maxRun is the maximum size in bytes of the body of POST /api/v1/run, and maxRunArgs the
	// maximum number of words of its command.
	maxRun     = 64 << 10
	maxRunArgs = 1024
)

// Handler returns a handler for the reports below /api/v1/ and for POST /api/v1/run. user returns
// the user of a request, or nil if it has none.
func (r *Reporter) Handler(user func(*http.Request) *acl.User) http.Handler {
	return &handler{r, user}
}

type handler struct {
	*Reporter
	user func(*http.Request) *acl.User
}

func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	name, in := strings.CutPrefix(req.URL.Path, apiPath)
	switch {
	case !in:
		fail(w, http.StatusNotFound, "there is nothing here")
	case name == "run":
		h.serveRun(w, req)
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed, "reports are read with GET")
	default:
		h.serveReport(w, req, name)
	}
}

func (h *handler) serveReport(w http.ResponseWriter, req *http.Request, name string) {
	if _, is := parameters(name); !is {
		fail(w, http.StatusNotFound, "there is no such report")
		return
	}
	given, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		fail(w, http.StatusBadRequest, "the parameters cannot be read")
		return
	}
	q, err := ParseQuery(name, given, h.src.Databases())
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	text, err := h.Answer(h.user(req), req.RemoteAddr, q)
	if err != nil {
		failWith(w, err)
		return
	}
	_, _ = w.Write(text) // fails only if the client has disconnected
}

func (h *handler) serveRun(w http.ResponseWriter, req *http.Request) {
	kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	u := h.user(req)
	switch {
	case !h.src.Actions():
		fail(w, http.StatusForbidden, "admin-actions is no: commands are not run here")
		return
	case req.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		fail(w, http.StatusMethodNotAllowed, "commands are run with POST")
		return
	case err != nil || kind != "application/json":
		fail(w, http.StatusUnsupportedMediaType, "the body is application/json")
		return
	case u == nil:
		fail(w, http.StatusForbidden, "commands are run as a user")
		return
	}
	q, err := readRun(http.MaxBytesReader(w, req.Body, maxRun), h.src.Databases())
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	reply, err := h.Run(u, req.RemoteAddr, q)
	if err != nil {
		failWith(w, err)
		return
	}
	text, err := json.Marshal(reply)
	if err != nil {
		fail(w, http.StatusInternalServerError, "the reply cannot be shown")
		return
	}
	_, _ = w.Write(text) // fails only if the client has disconnected
}

// readRun parses and checks the body of POST /api/v1/run. databases is the number of databases.
func readRun(body io.Reader, databases int) (q RunRequest, err error) {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return q, errors.New(`the body is not {"args":["COMMAND","argument"]}`)
	}
	switch {
	case d.More():
		return q, errors.New("something follows the request")
	case len(q.Args) == 0 || len(q.Args) > maxRunArgs:
		return q, errors.New("args has from 1 to 1024 words")
	case q.DB < 0 || q.DB >= databases:
		return q, errors.New("there is no such database")
	}
	return q, nil
}

// failWith replies with err, the error of a report or command, and the HTTP status for it.
func failWith(w http.ResponseWriter, err error) {
	var forbidden errForbidden
	var failed *Failed
	switch {
	case errors.As(err, &forbidden):
		fail(w, http.StatusForbidden, forbidden.Error())
	case errors.As(err, &failed):
		fail(w, failed.Status, failed.Text)
	default:
		fail(w, http.StatusInternalServerError, "the report cannot be made")
	}
}

// fail replies with a status and the reason.
func fail(w http.ResponseWriter, status int, why string) {
	w.WriteHeader(status)
	text, err := json.Marshal(Failure{Error: why})
	if err == nil {
		_, _ = w.Write(text)
	}
}
