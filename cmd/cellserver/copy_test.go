package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

// TestCopySaysWhatItLeaves: the tool prints which parts it does not copy.
func TestCopySaysWhatItLeaves(t *testing.T) {
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(limit.Instant(1))})
	defer ks.Close()
	leaves := func(db int) string {
		var out strings.Builder
		c := &copying{migration: migration{w: &out, db: db}}
		c.leave(ks)
		return out.String()
	}
	require.Empty(t, leaves(0))
	for _, db := range []int{0, 3, 3, keyspace.System} {
		key := []byte{byte('a' + ks.Stats().Databases[3].Keys)}
		require.NoError(t, ks.Restore(db, key, entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("1")}))
	}
	require.Equal(t, "not copied: 2 keys of database 3 (--db 3)\n", leaves(0))
	require.Equal(t, "not copied: 1 keys of database 0 (--db 0)\n", leaves(3))
}

// TestCopyLeavesTheKeysOfPoliciesAlone: a client may have called a limiter like a key of the servers in the store.
func TestCopyLeavesTheKeysOfPoliciesAlone(t *testing.T) {
	c := &copying{migration: migration{match: "*"}}
	e := entry.Entry{Kind: entry.Cell, Expiry: entry.NoExpiry - 1}
	require.Empty(t, c.unwanted([]byte("{policies}"), &e))
	require.Equal(t, "its key is one that servers use for policies in a store", c.unwanted([]byte("{policies}:head"), &e))
}
