package local_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/internal/local"
	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// five returns numbers as a reply has them.
func five(n rules.Numbers) [5]int64 {
	millis := func(d time.Duration) int64 {
		if d == rules.None {
			return -1
		}
		return d.Milliseconds()
	}
	return [5]int64{n.Refused, n.Limit, n.Remaining, millis(n.RetryAfter), millis(n.ResetAfter)}
}

func parse(t *testing.T, texts ...string) (clauses []rules.Clause) {
	t.Helper()
	for _, text := range texts {
		c, err := rules.ParseClause(text, time.Second)
		require.NoError(t, err)
		clauses = append(clauses, c)
	}
	return clauses
}

// TestDecisionsAreThoseOfTheServer plays the calls of decide.json.
func TestDecisionsAreThoseOfTheServer(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", "decide.json"))
	require.NoError(t, err)
	var file struct {
		Vectors []struct {
			Name    string
			Clauses []string
			Steps   []struct {
				At, Cost int64
				Member   string
				Reply    [5]int64
				Each     [][5]int64
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Vectors)
	for _, v := range file.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			table := local.New(parse(t, v.Clauses...))
			for i, s := range v.Steps {
				d := table.Decide(time.UnixMilli(s.At), "k", s.Cost, s.Member, false)
				var each [][5]int64
				for _, c := range d.Clauses {
					each = append(each, five(c))
				}
				require.Equal(t, s.Each, each, "step %d: %d units at %d", i, s.Cost, s.At)
				require.Equal(t, s.Reply, five(d.Numbers), "step %d", i)
			}
		})
	}
}

// TestFullTable: new keys share a state while all others are in use, and have their own again afterwards.
func TestFullTable(t *testing.T) {
	table, now := local.New(parse(t, "TB 2 1 60")), time.UnixMilli(1_790_000_000_000)
	for i := range 100_000 {
		require.Zero(t, table.Decide(now, strconv.Itoa(i), 1, "", false).Refused)
	}
	require.Equal(t, 100_000, table.Len())
	require.Zero(t, table.Decide(now, "new", 2, "", false).Refused)
	require.EqualValues(t, 1, table.Decide(now, "other", 1, "", false).Refused)
	require.Zero(t, table.Decide(now, "7", 1, "", false).Refused, "a known key has its own")
	require.Zero(t, table.Decide(now.Add(time.Minute), "other", 2, "", false).Refused)
	require.Equal(t, 2, table.Len(), "the others were unused again")
	table.Reset()
	require.Zero(t, table.Len())
}

func TestPeekTakesNothing(t *testing.T) {
	table, now := local.New(parse(t, "SW 2 60 FIXED", "CC 1 30")), time.UnixMilli(1_790_000_000_000)
	for range 3 {
		require.Equal(t, [5]int64{0, 1, 1, -1, 0}, five(table.Decide(now, "k", 2, "m", true).Numbers))
	}
}
