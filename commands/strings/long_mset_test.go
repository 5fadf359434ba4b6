package strings_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestLongMSETIsSeenWholeOrNotAtAll: one client repeatedly sets 30,000 keys to the next value,
// while another reads the first and the last of them at one instant and always sees the same
// value.
func TestLongMSETIsSeenWholeOrNotAtAll(t *testing.T) {
	writer := inproc.Open(t)
	set := func(value string) []byte {
		args := []string{"MSET"}
		for i := range 30_000 {
			args = append(args, "k"+strconv.Itoa(i), value)
		}
		return inproc.Encode(nil, args...)
	}
	writer.Packet(set("0"))
	over := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		defer close(over)
		for i := range 5 {
			writer.Packet(set(strconv.Itoa(i)))
		}
	})
	reader := writer.Another()
	for {
		reply := strings.Split(reader.Do("MGET", "k0", "k29999"), "\r\n")
		require.Equal(t, reply[2], reply[4], "half of an MSET was seen")
		select {
		case <-over:
			done.Wait()
			return
		default:
		}
	}
}
