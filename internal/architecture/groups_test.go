package architecture

import (
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryGroupIsInTheList: a folder that counts as a group of commands is in the list of
// what the server has. The reverse is a rule of [Check].
func TestEveryGroupIsInTheList(t *testing.T) {
	list, err := os.ReadFile("../../commands/groups.go")
	require.NoError(t, err)
	for _, folder := range groups {
		require.Contains(t, string(list), "\t\t"+path.Base(folder)+".Group(),\n")
	}
}
