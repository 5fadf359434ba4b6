package sets_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestSpopTakesEachMemberOnce: the members of one SPOP differ from each other, and are removed.
func TestSpopTakesEachMemberOnce(t *testing.T) {
	b := inproc.Open(t)
	for _, n := range []int{30, 3000} {
		args := []string{"SADD", "s"}
		for i := range n {
			args = append(args, fmt.Sprintf("%05d", i))
		}
		b.Do(args...)
		seen := map[string]bool{}
		for len(seen) < n {
			reply := strings.Split(b.Do("SPOP", "s", "7"), "\r\n")
			for i := 2; i < len(reply); i += 2 {
				require.False(t, seen[reply[i]], reply[i])
				seen[reply[i]] = true
			}
			require.Equal(t, fmt.Sprintf(":%d\r\n", n-len(seen)), b.Do("SCARD", "s"))
		}
	}
}
