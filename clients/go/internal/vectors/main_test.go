package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/internal/local"
	"github.com/cellserver/cellserver/clients/go/internal/rules"
	"github.com/cellserver/cellserver/policy"
)

// TestFilesAreFresh compares the files with what make generate would write.
func TestFilesAreFresh(t *testing.T) {
	made, err := files()
	require.NoError(t, err)
	for _, f := range made {
		want, err := f.text()
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("..", "..", "..", "vectors", f.name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s is stale: run make generate", f.name)
	}
}

// TestNamesAreTheServers compares the rule for names with that of the server, by each byte and each length.
func TestNamesAreTheServers(t *testing.T) {
	names := []string{"", "api"}
	for b := range 256 {
		names = append(names, string([]byte{byte(b)}), "a"+string([]byte{byte(b)}))
	}
	for n := range 80 {
		names = append(names, strings.Repeat("a", n))
	}
	for _, name := range names {
		require.Equal(t, policy.CheckName([]byte(name)) == nil, rules.CheckName(name) == nil, "%q", name)
	}
}

// TestLocalIsTheServer: the limiter in the process answers 100,000 drawn calls as the server does.
func TestLocalIsTheServer(t *testing.T) {
	const calls = 20_000
	for i, s := range []sequence{
		{Clauses: []string{"TB 50 13 7s"}, Steps: drawn(100, calls, 900, 12)},
		{Clauses: []string{"SW 40 10 COUNTER"}, Steps: drawn(101, calls, 900, 12)},
		{Clauses: []string{"SW 40 10 FIXED"}, Steps: drawn(102, calls, 900, 12)},
		{Clauses: []string{"CC 4 3"}, Steps: drawnMembers(103, calls, 900)},
		{Clauses: []string{"CC 4 3", "TB 50 13 7s"}, Steps: withMembers(drawn(105, calls, 900, 2))},
		{Clauses: []string{"SW 40 10 COUNTER CALLS", "TB 50 13 7s"}, Steps: drawn(106, calls, 900, 12)},
		{Clauses: []string{"CL 30 11 3", "SW 70 11s COUNTER", "TB 20 5 2"}, Steps: drawn(104, calls, 900, 12)},
	} {
		require.NoError(t, s.decide())
		limits, err := clauses(s.Clauses)
		require.NoError(t, err)
		table := local.New(limits)
		for j, c := range s.Steps {
			d := table.Decide(time.UnixMilli(c.At), "k", c.Cost, c.Member, false)
			require.Equal(t, c.Reply, numbersOf(&d.Numbers), "row %d, step %d", i, j)
			for k := range d.Clauses {
				require.Equal(t, c.Each[k], numbersOf(&d.Clauses[k]), "row %d, step %d, clause %d", i, j, k)
			}
		}
	}
}

// withMembers gives each step one of six members.
func withMembers(steps []step) []step {
	for i := range steps {
		steps[i].Member = fmt.Sprint("m", i*i%7%6)
	}
	return steps
}

func numbersOf(n *rules.Numbers) [5]int64 {
	return [5]int64{n.Refused, n.Limit, n.Remaining, millis(n.RetryAfter), millis(n.ResetAfter)}
}
