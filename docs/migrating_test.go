package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// textCall is a call of a limiter in a line of text or a table.
	textCall = regexp.MustCompile("`((?:CL|SW|TB|CC|RL)\\.[A-Z]+ [^`]*)`")
	// codeCall is the name of one in code, in quotes of any language, and codeArgument an
	// argument behind it: a text, a number or a variable.
	codeCall     = regexp.MustCompile(`["']((?:CL|SW|TB|CC|RL)\.[A-Z]+)["']`)
	codeArgument = regexp.MustCompile("^\\s*,\\s*(?:f?\"([^\"]*)\"|'([^']*)'|`([^`]*)`|([\\d_]+)|(\\w+))")
	codeEnd      = regexp.MustCompile(`^\s*[)\]]`)
)

// withPlaceholders are calls of the pages that name an argument instead of giving it.
var withPlaceholders = []string{
	"CC.ACQUIRE key 3 lease member", "SW.ALLOW key limit window", "SW.ALLOW … LOG", "TB.ACQUIRE key queue 1 200 LEAKY MS",
}

// callsOf returns the limiter calls that a page shows completely, each as words.
func callsOf(page string) (calls [][]string) {
	for _, m := range textCall.FindAllStringSubmatch(page, -1) {
		calls = append(calls, strings.Fields(m[1]))
	}
	for _, at := range codeCall.FindAllStringSubmatchIndex(page, -1) {
		call, rest := []string{page[at[2]:at[3]]}, page[at[1]:]
		for m := codeArgument.FindStringSubmatch(rest); m != nil; m = codeArgument.FindStringSubmatch(rest) {
			word := strings.ReplaceAll(m[1]+m[2]+m[3]+m[5], " ", "_") + strings.ReplaceAll(m[4], "_", "")
			call, rest = append(call, word), rest[len(m[0]):]
		}
		if len(call) > 1 && codeEnd.MatchString(rest) { // else some of it is computed
			calls = append(calls, call)
		}
	}
	return calls
}

// TestMigratingCalls runs each limiter call that the migration pages show completely, in text and
// in code, on an empty server: none is an error, and calls that charge are allowed.
func TestMigratingCalls(t *testing.T) {
	pages, err := filepath.Glob("migrating/*.md")
	require.NoError(t, err)
	played, skipped := 0, 0
	for _, name := range pages {
		page, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, words := range callsOf(string(page)) {
			call := strings.Join(words, " ")
			if slices.Contains(withPlaceholders, call) {
				skipped++
				continue
			}
			reply := newExampleRun(t).client(t, "").do(t, name, call)
			switch words[0] {
			case "CC.RELEASE", "CC.RENEW": // of a lease that no member has
				require.Equal(t, "0", reply, "%s: %s", name, call)
			default:
				require.Regexp(t, `^0 `, reply, "%s: %s", name, call)
			}
			played++
		}
	}
	require.Equal(t, len(withPlaceholders), skipped)
	require.GreaterOrEqual(t, played, 50, "the pages lost their calls")
}
