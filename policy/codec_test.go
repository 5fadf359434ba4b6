package policy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRecords pins the bytes in files.
func TestRecords(t *testing.T) {
	main := entryOf(t, policy.Main, "")
	main.Limits, main.Shadow, main.File, main.Comment, main.Since = limitsOf(t, "tb 200 100 1 sw 5 60 fixed"), true, true, `a "b" \ ü`, 17
	keyed := entryOf(t, policy.Main, "")
	keyed.Key, keyed.File, keyed.Comment = policy.KeyForm{IP: true, V4: 24, V6: 56}, true, "c"
	classed := entryOf(t, policy.Main, "")
	classed.Classes, classed.Notify = "batch 30% web 0%", 80
	candidate := entryOf(t, policy.Candidate, "")
	candidate.Limits, _ = policy.ParseLimits(words("CL 15 30 60"), true, policy.Bounds{})
	override := entryOf(t, policy.Override, "acme/*")
	override.Until = -5
	boost := entryOf(t, policy.Boost, "\x00\xff")
	boost.Until, boost.Since = 1_700_000_000_000_000_001, 1_700_000_000_000_000_000
	block := entryOf(t, policy.Block, "*")
	block.Comment = "abuse"
	for _, row := range []struct {
		entry      *policy.Entry
		key, value string
	}{
		{main, "main/api", `{"limits":["TB 200 100 1","SW 5 60 FIXED"],"shadow":true,"file":true,"comment":"a \"b\" \\ ü","since":17}`},
		{keyed, "main/api", `{"limits":["TB 200 100 1"],"file":true,"key":"IP 24 56","comment":"c","since":0}`},
		{classed, "main/api", `{"limits":["TB 200 100 1"],"notify":"80%","classes":"batch 30% web 0%","since":0}`},
		{candidate, "try/api", `{"limits":["CL 15 30 60"],"ms":true,"since":0}`},
		{override, "override/api/acme/*", `{"limits":["TB 200 100 1"],"until":-5,"since":0}`},
		{boost, "boost/api/\x00\xff", `{"factor":1.5,"until":1700000000000000001,"since":1700000000000000000}`},
		{block, "block/api/*", `{"comment":"abuse","since":0}`},
		{entryOf(t, policy.Exempt, "a"), "exempt/api/a", `{"since":0}`},
	} {
		require.Equal(t, row.key, string(row.entry.AppendKey(nil)))
		require.Equal(t, row.value, string(row.entry.AppendValue(nil)))
		require.True(t, json.Valid([]byte(row.value)))
		got, err := policy.DecodeEntry([]byte(row.key), []byte(row.value), policy.Bounds{})
		require.NoError(t, err, row.key)
		require.Equal(t, row.entry, got)
	}
}

func TestBadRecords(t *testing.T) {
	const tb = `{"limits":["TB 200 100 1"],"since":0}`
	for _, row := range []struct {
		key, value string
		want       error // nil for an error of limits
	}{
		{"", tb, policy.ErrRecord},
		{"main", tb, policy.ErrRecord},
		{"main/", tb, policy.ErrRecord},
		{"Main/api", tb, policy.ErrRecord},
		{"other/api", tb, policy.ErrRecord},
		{"main/api/acme", tb, policy.ErrRecord},
		{"main/a:b", tb, policy.ErrRecord},
		{"override/api", tb, policy.ErrRecord},
		{"override/api/", tb, policy.ErrRecord},
		{"override//a", tb, policy.ErrRecord},
		{"override/api/" + strings.Repeat("p", 1025), tb, policy.ErrRecord},

		{"main/api", "", policy.ErrDeleted},
		{"main/api/acme", "", policy.ErrRecord},
		{"main/api", "{}", policy.ErrRecord},
		{"main/api", " " + tb, policy.ErrRecord},
		{"main/api", tb + " ", policy.ErrRecord},
		{"main/api", tb[:len(tb)-1], policy.ErrRecord},
		{"main/api", `{"since":0}`, policy.ErrField},
		{"main/api", `{"limits":[],"since":0}`, nil},
		{"main/api", `{"limits":[""],"since":0}`, nil},
		{"main/api", `{"limits":["tb 200 100 1"],"since":0}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200  100 1"],"since":0}`, nil},
		{"main/api", `{"limits":["TB 200 100 1 SW 5 60"],"since":0}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200","100 1"],"since":0}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200 100 1 5"],"since":0}`, nil},
		{"main/api", `{"limits":["SW 101 60 LOG"],"since":0}`, nil},
		{"main/api", `{"limits":["TB 200 100 1",],"since":0}`, nil},
		{"main/api", `{"limits":["TB 200 100 1"],"ms":false,"since":0}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200 100 1"],"since":0,"ms":true}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200 100 1"],"other":true,"since":0}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200 100 1"],"since":00}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200 100 1"],"since":+1}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200 100 1"],"since":-0}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200 100 1"],"since":}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200 100 1"],"since":9223372036854775808}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200 100 1"],"until":5,"since":0}`, policy.ErrField},
		{"override/api/a", `{"limits":["TB 200 100 1"],"until":9223372036854775807,"since":0}`, policy.ErrRecord},
		{"override/api/a", `{"limits":["TB 200 100 1"],"shadow":true,"since":0}`, policy.ErrField},
		{"override/api/a", `{"limits":["TB 200 100 1"],"key":"IP 24 56","since":0}`, policy.ErrField},
		{"main/api", `{"limits":["TB 200 100 1"],"key":"IP 33 56","since":0}`, policy.ErrKey},
		{"main/api", `{"limits":["TB 200 100 1"],"key":"IP 024 56","since":0}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200 100 1"],"key":"ip 24 56","since":0}`, policy.ErrRecord},
		{"main/api", `{"limits":["TB 200 100 1"],"key":"","since":0}`, policy.ErrKey},
		{"boost/api/a", `{"factor":1.50,"since":0}`, policy.ErrRecord},
		{"boost/api/a", `{"factor":0,"since":0}`, policy.ErrFactor},
		{"boost/api/a", `{"file":true,"factor":1.5,"since":0}`, policy.ErrField},
		{"boost/api/a", `{"since":0}`, policy.ErrFactor},
		{"boost/api/a", `{"factor":1.5`, policy.ErrFactor},
		{"block/api/a", `{"comment":"","since":0}`, policy.ErrRecord},
		{"block/api/a", `{"comment":"a\u0041","since":0}`, policy.ErrRecord},
		{"block/api/a", `{"comment":"a\/","since":0}`, policy.ErrRecord},
		{"block/api/a", "{\"comment\":\"a\n\",\"since\":0}", policy.ErrComment},
		{"block/api/a", "{\"comment\":\"\xff\",\"since\":0}", policy.ErrComment},
		{"block/api/a", `{"comment":"a\`, policy.ErrRecord},
		{"block/api/a", `{"comment":"` + strings.Repeat("c", 1025) + `","since":0}`, policy.ErrComment},
	} {
		e, err := policy.DecodeEntry([]byte(row.key), []byte(row.value), policy.Bounds{LogMaxEntries: 100})
		require.Error(t, err, "%s %s", row.key, row.value)
		require.Nil(t, e)
		if row.want != nil {
			require.ErrorIs(t, err, row.want, "%s %s", row.key, row.value)
		}
	}
}

// TestCutRecords: no part of a record is a valid record, and changing a byte never gives another
// encoding of the same entry.
func TestCutRecords(t *testing.T) {
	key := []byte("override/api/a*")
	value := []byte(`{"limits":["TB 200 100 1 INIT 5","SW 5 60"],"ms":true,"file":true,"comment":"\"b","until":5,"since":17}`)
	_, err := policy.DecodeEntry(key, value, policy.Bounds{})
	require.NoError(t, err)
	for i := range value {
		_, err := policy.DecodeEntry(key, value[:i], policy.Bounds{})
		require.Error(t, err)
		was := value[i]
		for c := range 256 {
			value[i] = byte(c)
			checkRecord(t, key, value)
		}
		value[i] = was
	}
}

// checkRecord decodes any bytes. An accepted record is encoded to the same bytes, and has the
// fields of its text as JSON.
func checkRecord(t require.TestingT, key, value []byte) {
	e, err := policy.DecodeEntry(key, value, policy.Bounds{})
	if err != nil {
		require.Nil(t, e)
		return
	}
	require.NoError(t, e.Check())
	require.Equal(t, string(key), string(e.AppendKey(nil)))
	require.Equal(t, string(value), string(e.AppendValue(nil)))
	var fields struct {
		Limits           []string
		Ms, Shadow, File bool
		Factor           json.Number
		Comment          string
		Until, Since     *int64
	}
	require.NoError(t, json.Unmarshal(value, &fields))
	require.Equal(t, e.Comment, fields.Comment)
	require.Equal(t, []bool{e.Shadow, e.File}, []bool{fields.Shadow, fields.File})
	require.Equal(t, int64(e.Since), *fields.Since)
	if e.Limits != nil {
		require.Equal(t, e.Limits.Text, fields.Limits)
		require.Equal(t, e.Limits.Millis, fields.Ms)
	}
}

// TestRecordsRoundTrip: every valid entry can be decoded from its record.
func TestRecordsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		require.NoError(t, e.Check())
		key, value := e.AppendKey([]byte("x"))[1:], e.AppendValue([]byte("x"))[1:]
		require.True(t, json.Valid(value))
		got, err := policy.DecodeEntry(key, value, policy.Bounds{})
		require.NoError(t, err, string(value))
		require.Equal(t, e, got)

		kind, name, pattern, err := policy.ParseKey(key)
		require.NoError(t, err)
		require.Equal(t, []any{e.Kind, e.Policy, e.Pattern}, []any{kind, name, pattern})
		_, err = policy.DecodeEntry(key, nil, policy.Bounds{})
		require.ErrorIs(t, err, policy.ErrDeleted)
	})
}

// drawEntry draws a valid entry.
func drawEntry(t *rapid.T) *policy.Entry {
	e := &policy.Entry{
		Kind:    rapid.SampledFrom(allKinds).Draw(t, "kind"),
		Policy:  rapid.StringMatching(`[A-Za-z0-9_.-]{1,64}`).Draw(t, "policy"),
		Comment: rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool { return !unicode.IsControl(r) }), 0, 100, 1024).Draw(t, "comment"),
		Until:   limit.MaxInstant,
		Since:   limit.Instant(rapid.Int64().Draw(t, "since")),
	}
	if e.Kind.HasPattern() {
		e.Pattern = string(rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "pattern"))
		e.Until = limit.Instant(rapid.Int64().Draw(t, "until"))
	}
	if e.Kind <= policy.Override {
		e.File = rapid.Bool().Draw(t, "file")
		text := rapid.SampledFrom([]string{"TB 200 100 1", "SW 5 60 BUCKETS 7 EVEN CL 1 1 1 CC 5 60", strings.Repeat("SW 9 9 ANCHOR -17 ", 16), "NONE"}).Draw(t, "limits")
		l, err := policy.ParseLimits(words(text), rapid.Bool().Draw(t, "ms"), policy.Bounds{})
		require.Empty(t, err)
		e.Limits = l
	}
	if e.Kind == policy.Boost {
		e.Factor = rapid.Int64Range(policy.MinFactor, policy.MaxFactor).Draw(t, "factor")
	}
	e.Shadow = e.Kind == policy.Main && rapid.Bool().Draw(t, "shadow")
	e.Count = e.Kind == policy.Main && rapid.Bool().Draw(t, "count")
	return e
}

// FuzzDecodeEntry: see checkRecord.
func FuzzDecodeEntry(f *testing.F) {
	f.Add([]byte("main/api"), []byte(`{"limits":["TB 200 100 1","SW 5 60 FIXED"],"ms":true,"shadow":true,"file":true,"comment":"a \"b\" \\ ü","since":17}`))
	f.Add([]byte("main/api"), []byte(`{"limits":["NONE"],"shadow":true,"count":true,"since":17}`))
	f.Add([]byte("try/api"), []byte(`{"limits":["CL 15 30 60"],"since":0}`))
	f.Add([]byte("override/api/acme/*"), []byte(`{"limits":["SW 5 60 BUCKETS 10 EVEN ANCHOR KEY"],"until":-5,"since":0}`))
	f.Add([]byte("boost/api/\x00\xff"), []byte(`{"factor":1.5,"until":1700000000000000001,"since":1700000000000000000}`))
	f.Add([]byte("block/api/*"), []byte(`{"comment":"abuse","since":-9223372036854775808}`))
	f.Add([]byte("exempt/api/a"), []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) { checkRecord(t, key, value) })
}

// FuzzParseLimits: accepted limits are formatted as they were written, and stay valid when they are
// boosted.
func FuzzParseLimits(f *testing.F) {
	f.Add("TB 200 100 1 init 5 SW 5 60 BUCKETS 10 EVEN anchor 5 CL -1 30 60", true, int64(1500))
	f.Add("CC 5 60 cc 9223372036854775807 1", true, int64(999))
	f.Add("sw 9223372036854775807 1 LOG", false, int64(1))
	f.Add("TB 1 1000000000 4611686018427387905 DEBT", false, int64(1_000_000))
	f.Fuzz(func(t *testing.T, text string, millis bool, factor int64) {
		l, err := policy.ParseLimits(words(text), millis, policy.Bounds{})
		if err != "" {
			require.Nil(t, l)
			return
		}
		again, err := policy.ParseLimits(words(strings.Join(l.Text, " ")), millis, policy.Bounds{})
		require.Empty(t, err)
		require.Equal(t, l, again)
		factor = min(max(factor, policy.MinFactor), policy.MaxFactor)
		for i := range l.Clauses {
			checkBoost(t, &l.Clauses[i], min(factor, policy.OneFactor), max(factor, policy.OneFactor))
		}
	})
}

func BenchmarkDecodeEntry(b *testing.B) {
	key, value := []byte("override/api/customer:12345"), []byte(`{"limits":["TB 200 100 1"],"comment":"contract 2031","since":1700000000000000000}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := policy.DecodeEntry(key, value, policy.Bounds{}); err != nil {
			b.Fatal(err)
		}
	}
}
