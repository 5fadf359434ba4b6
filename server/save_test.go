package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSnapshotAtTheEnd: a server with save points writes one more snapshot when it
// stops, unless SHUTDOWN says otherwise; without save points only if it does.
func TestSnapshotAtTheEnd(t *testing.T) {
	for _, row := range []struct {
		points, shutdown string
		kept             bool
	}{
		{"900 1", "", true},
		{"900 1", "NOSAVE", false},
		{"", "", false},
		{"", "SAVE", true},
	} {
		t.Run(row.points+" "+row.shutdown, func(t *testing.T) {
			dir := t.TempDir()
			f := start(t, "goroutine", "--dir", dir, "--save", row.points)
			c := f.dial()
			require.Equal(t, "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:20\r\n", c.do("CL.THROTTLE", "k", "15", "30", "600"))
			c.send("SHUTDOWN " + row.shutdown + "\r\n")
			c.expectEnd()
			f.end()

			f = start(t, "goroutine", "--dir", dir)
			want := ":0\r\n"
			if row.kept {
				want = ":1\r\n"
			}
			require.Equal(t, want, f.dial().do("EXISTS", "k"))
			f.end()
		})
	}
}
