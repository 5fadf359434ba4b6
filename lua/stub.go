package lua

import (
	"errors"

	"github.com/cellserver/cellserver/resp"
)

type chunk struct{}

type facts struct {
	straight, confined bool
	calls              []Call
}

type guard struct{}

func (*guard) killWith(string) {}

// Run is one execution at a time. Only Kill may be called by another goroutine
// than the one that owns it.
type Run struct{ guard guard }

func newRun(Limits) *Run { return &Run{} }

func (r *Run) reusable() bool { return true }
func (r *Run) close()         {}

func (r *Run) execute(_ *Script, _, _ [][]byte, _ Host, w *resp.Writer) { w.Null() }

func compileScript(source []byte) (*Script, error) {
	if len(source) > MaxSource {
		return nil, errors.New("ERR Error compiling script")
	}
	return &Script{sha: SHA(source), source: append([]byte(nil), source...)}, nil
}
