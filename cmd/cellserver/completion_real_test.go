//go:build real

package main

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/programs"
)

// silent runs a program that prints nothing about a valid file.
func silent(t *testing.T, name string, args ...string) {
	t.Helper()
	said, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Empty(t, string(said))
}

// TestManPageIsWellFormedAndListsEverything: mandoc reports no fault of the page, and the formatted
// page has every option and every command.
func TestManPageIsWellFormedAndListsEverything(t *testing.T) {
	programs.Need(t, "mandoc")
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	page := printed(t, "cellserver.1", "man")
	silent(t, "mandoc", "-T", "lint", "-W", "warning", page)
	shown, err := exec.Command("mandoc", "-T", "utf8", "-O", "width=200", page).Output()
	require.NoError(t, err)
	text := regexpOverstrike.ReplaceAllString(string(shown), "")
	require.Contains(t, text, "2026-01-01")
	for _, o := range config.Describe() {
		require.Contains(t, text, "--"+o.Name+" "+o.Hint)
	}
	for name := range tools {
		require.Contains(t, text, "\n   "+name+"\n")
	}
}

// regexpOverstrike finds how mandoc prints bold and italic letters: each twice.
var regexpOverstrike = regexp.MustCompile(`.\x08`)

// completions maps a typed line to some of the words offered for its last word.
var completions = map[string][]string{
	"cellserver ":                    {"check-aof", "doctor", "help"},
	"cellserver che":                 {"check-aof", "check-config"},
	"cellserver --appendfs":          {"--appendfsync"},
	"cellserver --appendfsync ":      {"always", "everysec", "no"},
	"cellserver a.conf --appendonly": {"--appendonly"},
	"cellserver --appendonly y":      {"yes"},
	"cellserver check-aof --":        {"--fix"},
	"cellserver check-config a --ap": {"--appendonly", "--appendfsync"},
	"cellserver ping --ca":           {"--cacert"},
	"cellserver ping --cert some-f":  {"some-folder"},
	"cellserver top --in":            {"--insecure", "--interval"},
	"cellserver export --":           {"--match", "--db", "--dry-run"},
	"cellserver import --dr":         {"--dry-run"},
	"cellserver help maxmemory-po":   {"maxmemory-policy"},
	"cellserver help CL.":            {"CL.THROTTLE"},
	"cellserver check-aof some-fol":  {"some-folder"},
	"cellserver policy ":             {"check", "diff", "from-envoy", "from-limitador"},
	"cellserver policy from-":        {"from-envoy", "from-limitador"},
	"cellserver policy check some-f": {"some-folder"},
	"cellserver --dir some-fol":      {"some-folder"},
	"cellserver completion ":         nil,
	"cellserver --port ":             nil,
}

// nothingElse are lines for which a shell has to offer exactly the words of completions.
var nothingElse = []string{"cellserver che", "cellserver --appendfsync ", "cellserver --appendonly y", "cellserver check-aof --", "cellserver help CL.", "cellserver ping --ca", "cellserver top --in", "cellserver export --", "cellserver policy ", "cellserver policy from-"}

// checkOffers checks completions in a directory that contains some-folder. offer returns the words
// that a shell offers.
func checkOffers(t *testing.T, offer func(line string) []string) {
	t.Helper()
	for line, want := range completions {
		got := offer(line)
		for i := range got {
			got[i] = strings.TrimSuffix(got[i], "/")
		}
		require.Subset(t, got, want, "%q", line)
		if slices.Contains(nothingElse, line) {
			require.ElementsMatch(t, want, got, "%q", line)
		}
	}
}

// folder returns a directory that contains only some-folder.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "some-folder"), 0o700))
	return dir
}

// TestBashCompletes: bash accepts the script, shellcheck reports nothing, and the right words are
// offered.
func TestBashCompletes(t *testing.T) {
	programs.Need(t, "bash")
	script, dir := printed(t, "completion.bash", "completion", "bash"), folder(t)
	silent(t, "bash", "-n", script)
	checkOffers(t, func(line string) []string {
		cmd := exec.Command("bash", "--norc", "-c", `source "$1"; IFS=' ' read -r -a COMP_WORDS <<<"$2"
[[ $2 != *' ' ]] || COMP_WORDS+=(''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cellserver; printf '%s\n' "${COMPREPLY[@]}"`, "bash", script, line)
		cmd.Dir = dir
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", said)
		return strings.Fields(string(said))
	})
	programs.Need(t, "shellcheck")
	silent(t, "shellcheck", "-s", "bash", script)
}

// TestFishCompletes: fish accepts the script and offers the right words.
func TestFishCompletes(t *testing.T) {
	programs.Need(t, "fish")
	script, dir := printed(t, "cellserver.fish", "completion", "fish"), folder(t)
	silent(t, "fish", "--no-execute", script)
	checkOffers(t, func(line string) (offered []string) {
		cmd := exec.Command("fish", "--no-config", "-c", `source $argv[1]; complete -C $argv[2]`, script, line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", said)
		for l := range strings.Lines(string(said)) {
			word, _, _ := strings.Cut(strings.TrimSpace(l), "\t")
			offered = append(offered, word)
		}
		return offered
	})
}

// TestZshCompletes: zsh accepts the function and offers the right words.
func TestZshCompletes(t *testing.T) {
	programs.Need(t, "zsh")
	script, dir := printed(t, "_cellserver", "completion", "zsh"), folder(t)
	silent(t, "zsh", "-n", script)
	offers, err := filepath.Abs("testdata/offers.zsh")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lines := slices.Sorted(maps.Keys(completions))
	cmd := exec.CommandContext(ctx, "zsh", append([]string{"-f", offers, filepath.Dir(script)}, lines...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TERM=dumb")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	answers := strings.Split(string(said), "-- end of offers --")
	require.Len(t, answers, len(lines)+1, "%s", said)
	checkOffers(t, func(line string) (offered []string) {
		answer := answers[slices.Index(lines, line)]
		for _, word := range offer.FindAllStringSubmatch(answer, -1) {
			offered = append(offered, word[1])
		}
		return offered
	})
}

// offer matches a word that testdata/offers.zsh prints.
var offer = regexp.MustCompile(`<([^<>]*)>`)
