package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

func TestKeysInSeveralSlotsAreRefusedInTheWordsOfRedis(t *testing.T) {
	require.EqualValues(t, "CROSSSLOT Several policies are charged in one slot: begin their keys with the same {tag}", command.StoreError(decide.ErrStatesApart))
	require.EqualValues(t, "CROSSSLOT Keys in request don't hash to the same slot", command.StoreError(decide.ErrCrossSlot))
}

// TestStateThatIsTooLargeNamesTheOption: the error must name store-max-value. The bounds of a log
// and of a set of leases are other options, and may be far away.
func TestStateThatIsTooLargeNamesTheOption(t *testing.T) {
	require.EqualValues(t, "ERR the state would exceed store-max-value", command.StoreError(limit.ErrTooLarge))
}
