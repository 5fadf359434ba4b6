package attack_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/tools/bench/attack"
)

// TestPagesNameEveryAttack: docs/attacks.md names every attack.
func TestPagesNameEveryAttack(t *testing.T) {
	page, err := os.ReadFile("../../../docs/attacks.md")
	require.NoError(t, err)
	for _, a := range attack.All() {
		require.Contains(t, string(page), "`"+a.Name+"`", "docs/attacks.md does not explain it")
	}
}
