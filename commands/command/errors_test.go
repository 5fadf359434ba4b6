package command_test

import (
	"testing"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/stretchr/testify/require"
)

func TestKeysInSeveralSlotsAreRefusedInTheWordsOfRedis(t *testing.T) {
	require.EqualValues(t, "CROSSSLOT Keys in request don't hash to the same slot", command.StoreError(decide.ErrCrossSlot))
}
