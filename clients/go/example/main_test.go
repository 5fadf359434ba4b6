package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmeHasTheProgram: the README shows the program that a test runs.
func TestReadmeHasTheProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\n"+string(program)+"```\n")
}
