package figure

// Kind is the type of a figure.
type Kind string

// The types of figures, named as Prometheus names them.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
)

// Figure is an entry of the registry: a number, or one for each value of its labels.
type Figure struct {
	// Name is that in the metrics, without the prefix cellserver_. A figure without a name is in
	// INFO only.
	Name   string
	Kind   Kind
	Labels []string
	Help   string
	Values string // what the labels may be, for the documentation
	// Bound is how many values of the first label have series of their own, for values that come
	// from outside: the rest are counted together as "other". 0 is for labels that need no bound.
	Bound int
	// Own says that those values do not count among the series that all bounded figures share.
	Own bool
	// Info says which fields of INFO show the figure, nil for none.
	Info *Info
	// Read emits the numbers, each with the values of Labels. A figure is absent if it emits none.
	Read func(v *View, emit Emit)
	// Spread takes the place of Read for a histogram.
	Spread func(v *View, emit func(b Buckets, labels ...string))
}

// Emit takes a number and the values of the labels.
type Emit func(value float64, labels ...string)

// Buckets are those of a histogram: how many values there were, their sum, and how many were at most
// each bound.
type Buckets struct {
	Count, Sum float64
	Below      map[float64]uint64
}

// Info is how INFO shows a figure: as integers.
type Info struct {
	Section string // as it is named there: "Stats"
	// Field returns the name of the field for the values of the labels, "" for none.
	Field func(labels []string) string
}

// Field is a field of a figure without labels.
func Field(section, name string) *Info {
	return &Info{section, func([]string) string { return name }}
}

// Fields are fields by the value of the only label. Other values have none.
func Fields(section string, names map[string]string) *Info {
	return &Info{section, func(labels []string) string { return names[labels[0]] }}
}

// Prefixed are fields that are named after the value of the only label, behind a prefix.
func Prefixed(section, prefix string) *Info {
	return &Info{section, func(labels []string) string { return prefix + labels[0] }}
}

// Shown is a figure without labels that only INFO shows.
func Shown(section, field string, read func(v *View, emit Emit)) Figure {
	return Figure{Info: Field(section, field), Read: read}
}

// One reads a figure without labels.
func One[N int64 | int | float64](read func(v *View) N) func(*View, Emit) {
	return func(v *View, emit Emit) { emit(float64(read(v))) }
}

// Bit is 1 for true.
func Bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
