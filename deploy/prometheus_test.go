package deploy_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

const rulesFile = "prometheus/cellserver.rules.yml"

var alertName = regexp.MustCompile(`(?m)^      - alert: (\w+)$`)

// dashboard is the part of a dashboard of Grafana that is checked.
type dashboard struct {
	UID        string
	Templating struct {
		List []struct{ Name, Query string }
	}
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr string }
		Datasource  struct{ UID string }
		Description string
	}
}

func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	text, err := os.ReadFile("grafana/cellserver.json")
	require.NoError(t, err)
	d := &dashboard{}
	require.NoError(t, json.Unmarshal(text, d))
	return d
}

// TestDashboardIsWellFormed: panels lie beside each other, and each has a source, a description
// and something to show.
func TestDashboardIsWellFormed(t *testing.T) {
	d := readDashboard(t)
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "two panels have the number %d", p.ID)
		ids[p.ID] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[at], "%s lies on %s", p.Title, taken[at])
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		require.NotEmpty(t, p.Description, p.Title)
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
	}
}
