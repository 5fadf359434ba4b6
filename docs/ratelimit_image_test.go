package docs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config/envoyenv"
)

// variableCells returns the cells with the names of variables and with their defaults.
func variableCells(all []envoyenv.Variable) (names, defaults string) {
	var n, d []string
	for _, v := range all {
		n = append(n, "`"+v.Name+"`")
		if v.Default != "" {
			d = append(d, "`"+v.Default+"`")
		} else {
			d = append(d, "–")
		}
	}
	return strings.Join(n, ", "), strings.Join(d, ", ")
}

// TestVariablesOfRatelimit compares the tables of the page with those of package envoyenv.
func TestVariablesOfRatelimit(t *testing.T) {
	var variables, idle, xds strings.Builder
	variables.WriteString("| variable | default | option | |\n|---|---|---|---|\n")
	for _, r := range envoyenv.Rows() {
		names, defaults := variableCells(r.Variables)
		option := ""
		if r.Option != "" {
			option = "`" + r.Option + "`"
		}
		fmt.Fprintf(&variables, "| %s | %s | %s | %s |\n", names, defaults, option, r.Note)
	}
	idle.WriteString("| variables | why |\n|---|---|\n")
	for _, g := range envoyenv.Idle() {
		fmt.Fprintf(&idle, "| `%s` | %s |\n", strings.Join(g.Names, "` `"), g.Why)
	}
	xds.WriteString("| variable | default |\n|---|---|\n")
	for _, v := range envoyenv.XDS() {
		names, defaults := variableCells([]envoyenv.Variable{v})
		fmt.Fprintf(&xds, "| %s | %s |\n", names, defaults)
	}

	const page = "ratelimit-image.md"
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	text := string(content)
	for name, want := range map[string]string{"variables": variables.String(), "idle": idle.String(), "xds": xds.String()} {
		before, rest, found := strings.Cut(text, "<!-- "+name+" -->\n")
		require.True(t, found, name)
		got, after, found := strings.Cut(rest, "<!-- end -->")
		require.True(t, found, name)
		if *update {
			text = before + "<!-- " + name + " -->\n" + want + "<!-- end -->" + after
			continue
		}
		require.Equal(t, want, got, "go test ./docs -run TestVariablesOfRatelimit -update writes it")
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
	}
}
