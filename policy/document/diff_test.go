package document_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy/document"
)

// TestDiff: each kind of change to policies and overrides, and differences that do not count as
// one.
func TestDiff(t *testing.T) {
	from := mustParse(t, `policies:
  api:
    comment: what everybody gets
    limits: [TB 200 100 1]
    overrides:
      acme: {limits: [TB 2000 1000 1]}
      gone: {limits: [TB 1 1 1]}
      same: {limits: [TB 1 1 1], comment: a}
  old:
    limits: [SW 5 60]
    overrides:
      "x*": {limits: [SW 6 60], expires: 2026-12-01T00:00:00Z}
  same:
    limits: [tb 1 1 1]
  unit: {limits: [SW 5 60], overrides: {a: {limits: [SW 5 60]}, b: {limits: [SW 5 60], ms: true}}}
`)
	to := mustParse(t, `policies:
  unit: {limits: [SW 5 60], ms: true, overrides: {a: {limits: [SW 5 60]}, b: {limits: [SW 5 60]}}}
  same: {limits: [TB   1 1 1], shadow: false, comment: "", overrides: {}}
  new: {limits: [SW 5 60, CL 15 30 60], shadow: true}
  api:
    limits: [TB 300 100 1]
    comment: what everybody gets
    overrides:
      same: {limits: [TB 1 1 1], comment: a}
      "new: *": {limits: [TB 3 1 1]}
      acme: {limits: [TB 2000 1000 1], comment: "contract: 17"}
`)
	changes := document.Diff(from, to)
	require.Equal(t, document.Change{
		Op: document.Replace, Policy: "api",
		Before: "{comment: what everybody gets, limits: [TB 200 100 1]}", After: "{comment: what everybody gets, limits: [TB 300 100 1]}",
	}, changes[0])
	require.Equal(t, document.Change{Op: document.Remove, Policy: "api", Pattern: "gone", Before: "{limits: [TB 1 1 1]}"}, changes[2])
	require.Equal(t, `~ api
    - {comment: what everybody gets, limits: [TB 200 100 1]}
    + {comment: what everybody gets, limits: [TB 300 100 1]}
~ api acme
    - {limits: [TB 2000 1000 1]}
    + {comment: "contract: 17", limits: [TB 2000 1000 1]}
- api gone
    - {limits: [TB 1 1 1]}
+ api "new: *"
    + {limits: [TB 3 1 1]}
+ new
    + {shadow: true, limits: [SW 5 60, CL 15 30 60]}
- old
    - {limits: [SW 5 60]}
- old "x*"
    - {limits: [SW 6 60], expires: 2026-12-01T00:00:00Z}
~ unit
    - {limits: [SW 5 60]}
    + {ms: true, limits: [SW 5 60]}
~ unit a
    - {limits: [SW 5 60]}
    + {ms: true, limits: [SW 5 60]}
`, string(document.AppendChanges(nil, changes)))
	require.Len(t, document.Diff(to, from), len(changes))
	require.Empty(t, document.Diff(to, to))
	require.Len(t, document.Diff(new(document.Document), to), 9)
}

func mustParse(t *testing.T, text string) *document.Document {
	t.Helper()
	d, faults := parse(text)
	require.NoError(t, faults.Err())
	return d
}
