package architecture

import (
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryGroupIsInTheList: each folder of groups is in the list of commands/groups.go. The reverse is a
// rule of [Check].
func TestEveryGroupIsInTheList(t *testing.T) {
	list, err := os.ReadFile("../../commands/groups.go")
	require.NoError(t, err)
	for _, folder := range groups {
		require.Contains(t, string(list), "\t\t"+path.Base(folder)+".Group(),\n")
	}
}
