//go:build real

package programs_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// ended is a test that records how it was ended, and ends only its goroutine.
type ended struct {
	testing.TB
	said string
}

func (e *ended) Helper() {}

func (e *ended) Fatalf(format string, args ...any) { e.end("FAIL: "+format, args) }

func (e *ended) Skipf(format string, args ...any) { e.end(format, args) }

func (e *ended) end(format string, args []any) {
	e.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// need returns how a test that needs programs was ended, "" if it was not.
func need(t *testing.T, names ...string) string {
	e := &ended{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		programs.Need(e, names...)
	}()
	<-done
	return e.said
}

// TestMissingProgramFailsInCI tests that a missing program is one SKIP line locally, and a failure
// in continuous integration.
func TestMissingProgramFailsInCI(t *testing.T) {
	t.Setenv("CI", "")
	require.Empty(t, need(t, "go"))
	require.Equal(t, "SKIP: no such-program (make setup installs it)", need(t, "go", "such-program"))
	t.Setenv("CI", "true")
	require.Empty(t, need(t, "go"))
	require.Equal(t, "FAIL: no such-program: CI has to have it (make setup)", need(t, "go", "such-program"))
}
