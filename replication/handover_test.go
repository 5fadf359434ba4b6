package replication

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHandoverFails: an error of the target ends a handover as long as it cannot have taken over.
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
				h.fails(err)
			}
			require.Equal(t, r.want, h.abort)
		})
	}
}
