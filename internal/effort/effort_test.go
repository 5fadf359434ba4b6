package effort_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
)

func TestSteps(t *testing.T) {
	for text, want := range map[string]int{"": 3, "0": 3, "-1": 3, "yes": 3, "1": 100, "20": 2000} {
		t.Setenv("CELL_LONG", text)
		require.Equal(t, want, effort.Steps(3, 100), text)
		require.Equal(t, want > 3, effort.Long(), text)
	}
}
