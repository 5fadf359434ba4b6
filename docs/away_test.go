package docs_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAwayPageShowsTheProgramsThatRun: the programs on the page are those that the tests run.
func TestAwayPageShowsTheProgramsThatRun(t *testing.T) {
	shown := showsPrograms(t, "when-it-is-away.md")
	require.Len(t, shown, len(awayPrograms))
	for _, file := range awayPrograms {
		require.Contains(t, shown, file)
	}
}

// awayPrograms are the programs of when-it-is-away.md, one in each language.
var awayPrograms = []string{
	"examples/python/when_away.py", "examples/java/WhenAway.java", "examples/node/when_away.js",
	"examples/go/whenaway/main.go", "examples/ruby/when_away.rb",
}
