package replication

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHandoverFails: an error of the target aborts a handover as long as the target cannot have
// taken over.
func TestHandoverFails(t *testing.T) {
	lost := errors.New("the connection is closed")
	handshake, psync := &refusal{"AUTH", "-WRONGPASS no"}, &refusal{"PSYNC", "-ERR no"}
	rows := map[string]struct {
		errs []error
		want string
	}{
		"nothing is known":           {[]error{lost}, ""},
		"PSYNC is refused":           {[]error{psync}, "Failover target rejected psync request"},
		"PSYNC is refused later":     {[]error{lost, psync}, "Failover target rejected psync request"},
		"nobody is let in":           {[]error{handshake}, `Failover target rejected the handshake: the primary answered AUTH with "-WRONGPASS no"`},
		"nobody is let in any more":  {[]error{lost, handshake}, ""},
		"nobody is let in as before": {[]error{lost, handshake, handshake}, ""},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			h := handover{state: handoverUnderWay}
			for _, err := range r.errs {
				h.noteFailure(!errors.Is(err, handshake), err)
			}
			require.Equal(t, r.want, h.abort)
		})
	}
}

// TestHandoverMisses: the target counts as ended only if its address refuses connections. It has
// accepted no change only while it still waits for the old primary.
func TestHandoverMisses(t *testing.T) {
	refused := fmt.Errorf("connecting to the primary: %w", syscall.ECONNREFUSED)
	asked := handover{state: handoverUnderWay, asked: true, askedAt: time.Minute}
	for name, r := range map[string]struct {
		h     handover
		why   error
		after time.Duration
		ends  bool
	}{
		"at once":           {asked, refused, 0, true},
		"just in time":      {asked, refused, confirmFor - 1, true},
		"too late":          {asked, refused, confirmFor, false},
		"a time-out":        {asked, syscall.ETIMEDOUT, 0, false},
		"a lost connection": {asked, io.EOF, 0, false},
		"not asked":         {handover{state: handoverUnderWay}, refused, 0, false},
		"not under way":     {handover{state: handoverWaiting, asked: true, askedAt: time.Minute}, refused, 0, false},
	} {
		r.h.linkFailed(r.why, time.Minute+r.after)
		require.Equal(t, r.ends, r.h.abort != "", name)
	}
}
