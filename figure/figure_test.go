package figure_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/figure"
)

// room is a source of figures.
type room struct{ open, shut float64 }

func doors(read *int) *figure.Registry {
	r := figure.New(
		figure.Figure{
			Name: "doors", Labels: []string{"state"}, Info: figure.Fields("House", map[string]string{"open": "doors_open"}),
			Read: func(v *figure.View, emit figure.Emit) {
				emit(figure.Of[room](v).open, "open")
				emit(figure.Of[room](v).shut, "shut")
				emit(float64(v.Field("House", "doors_lost")), "lost")
			},
		},
		figure.Shown("House", "doors_lost", figure.One(func(*figure.View) int64 { return 3 })),
		figure.Figure{Name: "absent", Read: func(*figure.View, figure.Emit) {}},
	)
	figure.Provide(r, func(*figure.View) room {
		*read++
		return room{2, 5}
	})
	return r
}

// TestViewReadsAPartOnce: a source is read once for each view, however many figures use it.
func TestViewReadsAPartOnce(t *testing.T) {
	read := 0
	r := doors(&read)
	v := r.View()
	require.InDelta(t, 10, v.Sum("doors", nil), 0)
	value, ok := v.Value("doors", "shut")
	require.True(t, ok)
	require.InDelta(t, 5, value, 0)
	require.Equal(t, 1, read)
	require.InDelta(t, 10, r.View().Sum("doors", nil), 0)
	require.Equal(t, 2, read)

	put := r.View()
	figure.Put(put, room{7, 0})
	require.InDelta(t, 10, put.Sum("doors", nil), 0)
	require.Equal(t, 2, read, "what is put is not read")
}

// TestWhatThereIsNot: an absent number is the zero value, and ok is false.
func TestWhatThereIsNot(t *testing.T) {
	read := 0
	v := doors(&read).View()
	for _, row := range []struct {
		name   string
		labels []string
	}{{"windows", nil}, {"absent", nil}, {"doors", nil}, {"doors", []string{"ajar"}}, {"doors", []string{"open", "open"}}} {
		value, ok := v.Value(row.name, row.labels...)
		require.False(t, ok, "%v", row)
		require.Zero(t, value, "%v", row)
	}
	require.Zero(t, figure.Of[*room](v))
	require.Zero(t, v.Field("Garden", "doors_lost"))
}

// TestFiguresBetween: the names are told without prefix and suffix, in the order of the registry.
func TestFiguresBetween(t *testing.T) {
	one := func(n int) func(*figure.View, figure.Emit) { return figure.One(func(*figure.View) int { return n }) }
	r := figure.New(
		figure.Figure{Name: "door_opened_total", Read: one(3)},
		figure.Figure{Name: "door_count", Read: one(1)},
		figure.Figure{Name: "door_shut_total", Read: one(2)},
		figure.Figure{Name: "door_lost_total", Labels: []string{"by"}, Read: one(7)},
		figure.Figure{Name: "window_shut_total", Read: one(5)},
		figure.Figure{Name: "door_waits_total", Spread: func(*figure.View, func(figure.Buckets, ...string)) {}},
		figure.Figure{Name: "door_absent_total", Read: func(*figure.View, figure.Emit) {}},
	)
	var names []string
	var values []float64
	r.View().Between("door_", "_total", func(name string, value float64) { names, values = append(names, name), append(values, value) })
	require.Equal(t, []string{"opened", "shut"}, names)
	require.Equal(t, []float64{3, 2}, values)
}

// TestFieldsOfASection: the fields of a section are those of its figures, in the order of the
// registry.
func TestFieldsOfASection(t *testing.T) {
	read := 0
	fields, order := map[string]int64{}, []string(nil)
	doors(&read).View().Fields("House", func(name string, value int64) {
		fields[name], order = value, append(order, name)
	})
	require.Equal(t, map[string]int64{"doors_open": 2, "doors_lost": 3}, fields)
	require.Equal(t, []string{"doors_open", "doors_lost"}, order)
}
