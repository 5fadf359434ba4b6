package blocking_test

import (
	"testing"

	"github.com/cellserver/cellserver/internal/inproc"
)

func TestScripts(t *testing.T) { inproc.PlayScripts(t, "testdata/scripts") }
