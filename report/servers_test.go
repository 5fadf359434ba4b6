package report

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChecksOfServersNameThoseThatDiffer(t *testing.T) {
	own := StoreServer{ID: "0", Address: "own", File: "a", Tzdata: "2025b", Self: true}
	files := func(all ...StoreServer) Check { return serverChecks(all)[0] }
	require.True(t, files().OK)
	require.True(t, files(own, own).OK)
	odd := StoreServer{ID: "odd", Unreadable: true}
	require.True(t, files(own, odd).OK, "nothing is known of it")
	other := StoreServer{ID: "1", Address: "there", Tzdata: "2025b"}
	is := files(other, own, odd)
	require.False(t, is.OK)
	require.Equal(t, "not those of there", is.Text)
	require.InDelta(t, 1, is.Value, 0)
	require.True(t, serverChecks([]StoreServer{own, other})[1].OK)
	many := []StoreServer{own}
	for i := range 9 {
		many = append(many, StoreServer{Address: strconv.Itoa(i)})
	}
	require.Equal(t, "not those of 0, 1, 2, 3, 4 and 4 others", files(many...).Text)
}
