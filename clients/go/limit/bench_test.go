package limit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/limit"
	"github.com/cellserver/cellserver/clients/go/limittest"
)

// BenchmarkCachedDenial measures a denial from memory, which is no call to the server.
func BenchmarkCachedDenial(b *testing.B) {
	fake := limittest.New(noon)
	require.NoError(b, fake.Policy("api", "TB 1 1 60"))
	l, err := limit.New(b.Context(), fake.Options(limit.Options{Policy: "api", OnUnavailable: limit.Deny}))
	require.NoError(b, err)
	defer func() { require.NoError(b, l.Close()) }()
	for range 2 {
		_, err = l.Allow(b.Context(), "ann")
		require.NoError(b, err)
	}
	asked := len(fake.Calls())
	b.ReportAllocs()
	for b.Loop() {
		if r, err := l.Allow(b.Context(), "ann"); err != nil || r.Source != limit.Cache {
			b.Fatal(r, err)
		}
	}
	require.Len(b, fake.Calls(), asked)
}
