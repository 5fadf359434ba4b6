package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/remote"
)

// checkStoreOptions requires the options that TestOptionsReachTheStore has set.
func checkStoreOptions(t *testing.T, o remote.Options) {
	t.Helper()
	require.NotNil(t, o.Local)
	require.NotNil(t, o.Log)
	o.Local, o.Log = nil, nil
	require.Equal(t, remote.Options{
		URL: "redis://user:canary@127.0.0.1:1", Prefix: "limits:", Hidden: "{policies}:", Timeout: 7 * time.Millisecond,
		FailPolicies: map[string]string{"": "open", "login:": "closed"}, Servers: 3,
		HotKeys: map[string]string{"": "exact", "t:": "lease"}, HotLease: 20 * time.Millisecond, DenialCache: 0,
		MaxValue: 1 << 20, MaxSkew: 9 * time.Millisecond, MultiAcross: "refuse",
	}, o)
}
