package limitador_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/limitadortest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// requestOf returns the request of a row.
func requestOf(row *limitadortest.Row) *limitador.Request {
	r := &limitador.Request{Namespace: []byte(row.Namespace), Delta: row.Delta}
	for _, values := range row.Descriptors {
		var d rls.Descriptor
		for key, value := range values {
			d.Entries = append(d.Entries, rls.Entry{Key: []byte(key), Value: []byte(value)})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

var modes = map[string]ratelimit.Mode{"should": ratelimit.Whole, "check": ratelimit.Peek, "report": ratelimit.Force}

// TestAnswersAreThoseOfLimitador plays all rows that were recorded from Limitador.
func TestAnswersAreThoseOfLimitador(t *testing.T) {
	count := map[string]int{}
	for _, is := range limitadortest.Cases(t, "testdata") {
		count["rows"] += len(is.Rows)
		c, _, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: is.Limits})
		if faults != nil {
			require.ErrorContains(t, faults.Err(), " is not supported")
			count["refused cases"]++
			count["refused"] += len(is.Rows)
			continue
		}
		s := open(t, c)
		for i := range is.Rows {
			row := &is.Rows[i]
			if row.Failed() {
				// A descriptor is not there, and a limit that looks at it does not apply.
				require.NoError(t, s.config.Plan(requestOf(row), &s.plan))
				count["errors"]++
				continue
			}
			s.clock.Set(limit.Instant(row.At * 1e9))
			a := s.call(t, requestOf(row), modes[row.Op])
			if row.Op == "report" {
				continue
			}
			require.True(t, !a.Limited || s.names(a, row), "%s at %d", is.Name, row.At)
			if why := row.Differs(a.Limited, fieldsOf(a)); why != "" {
				count[why]++
				t.Logf("%s %s at %d: %v\n  want %+v\n  got  %+v %s", why, is.Name, row.At, row.Descriptors, row.Res, a, a.Limits)
			}
		}
	}
	require.Equal(t, map[string]int{
		"rows": 4656,
		// These cases have conditions beyond the language.
		"refused cases": 9, "refused": 214,
		"errors":                66,
		limitadortest.ZeroReset: 63,
		limitadortest.NewReset:  70,
	}, count)
}

// names reports whether the answer names a limit that denies the request, as Limitador does: any of them.
func (s *service) names(a *limitador.Answer, r *limitadortest.Row) bool {
	var named []string
	for i, d := range s.decisions {
		if d.Denied {
			named = append(named, nameOf(s.plan.Calls[i].Limit.Name))
		}
	}
	return slices.Contains(named, nameOf(r.Res.LimitName)) && slices.Contains(named, nameOf(a.Limit.Name))
}

func nameOf(name *string) string {
	if name == nil {
		return "-"
	}
	return *name
}

// fieldsOf returns the header fields of an answer.
func fieldsOf(a *limitador.Answer) map[string]string {
	fields := map[string]string{}
	for _, f := range a.Fields() {
		fields[f.Name] = string(f.Value)
	}
	return fields
}
