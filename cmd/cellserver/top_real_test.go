//go:build real

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTopWhereNothingListens: the error explains a refused connection.
func TestTopWhereNothingListens(t *testing.T) {
	t.Setenv("REDISCLI_AUTH", "")
	err := showTop([]string{"-p", "1", "--once"}, &strings.Builder{})
	require.ErrorContains(t, err, "connection refused (nothing listens at this address)")
}
