package docs_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/server"
)

// TestPictureOfThePageIsOfThisVersion: make picture takes it of a server that runs, and writes into it
// which that was.
func TestPictureOfThePageIsOfThisVersion(t *testing.T) {
	picture, err := os.ReadFile("images/page.png")
	require.NoError(t, err)
	require.True(t, bytes.Contains(picture, []byte("tEXtSoftware\x00cellserver "+server.Version)), "make picture")
}
