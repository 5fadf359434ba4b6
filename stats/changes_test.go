package stats

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChangesAreKeptInOrder(t *testing.T) {
	var cs Changes
	require.Empty(t, cs.Since(0))
	for i := range 3*maxChanges + 7 {
		cs.Add(Change{Text: strconv.Itoa(i + 1)})
		all := cs.Since(0)
		require.Len(t, all, min(i+1, maxChanges))
		for n, c := range all {
			require.EqualValues(t, i+1-(len(all)-1-n), c.ID)
			require.Equal(t, strconv.FormatInt(c.ID, 10), c.Text)
		}
	}
	last := cs.Since(0)[maxChanges-1].ID
	require.Empty(t, cs.Since(last))
	require.Empty(t, cs.Since(last+100))
	require.Len(t, cs.Since(last-2), 2)
	cs.Add(Change{Text: strings.Repeat("x", 1000)})
	require.Len(t, cs.Since(last)[0].Text, maxChangeText)
}
