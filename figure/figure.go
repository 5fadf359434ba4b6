package figure

// Kind is the type of a figure.
type Kind string

// The types of figures, with the names of Prometheus.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
)

// Figure is an entry of the registry: a number, or one number for each combination of label values.
type Figure struct {
	// Name is its name in the metrics, without the prefix cellserver_. A figure without a name is
	// only in INFO.
	Name   string
	Kind   Kind
	Labels []string
	Help   string
	Values string // the possible values of the labels, for the documentation
	// Bound is how many values of the first label have their own series, for values that clients
	// determine: the rest are counted together as "other". 0 is for labels that need no bound.
	Bound int
	// Own says that these values do not count for the bound that all bounded figures share.
	Own bool
	// Info defines the fields of INFO that show the figure, nil for none.
	Info *Info
	// Read emits the numbers, each with the values of Labels. A figure is absent if it emits none.
	Read func(v *View, emit Emit)
	// Spread replaces Read for a histogram.
	Spread func(v *View, emit func(b Buckets, labels ...string))
}

// Emit receives a number and the values of the labels.
type Emit func(value float64, labels ...string)

// Buckets is a histogram: the number of values, their sum, and how many of them were at most each
// bound.
type Buckets struct {
	Count, Sum float64
	Below      map[float64]uint64
}

// Info is how INFO shows a figure: as integers.
type Info struct {
	Section string // the name of the section in INFO, such as "Stats"
	// Field returns the name of the field for the values of the labels, "" for none.
	Field func(labels []string) string
}

// Field returns an Info with one field, for a figure without labels.
func Field(section, name string) *Info {
	return &Info{section, func([]string) string { return name }}
}

// Fields returns an Info with a field for each value of the only label. Values that are not in
// names have none.
func Fields(section string, names map[string]string) *Info {
	return &Info{section, func(labels []string) string { return names[labels[0]] }}
}

// Prefixed returns an Info whose fields are named by a prefix and the value of the only label.
func Prefixed(section, prefix string) *Info {
	return &Info{section, func(labels []string) string { return prefix + labels[0] }}
}

// Shown returns a figure without labels that only INFO shows.
func Shown(section, field string, read func(v *View, emit Emit)) Figure {
	return Figure{Info: Field(section, field), Read: read}
}

// One returns a Read function for a figure without labels.
func One[N int64 | int | float64](read func(v *View) N) func(*View, Emit) {
	return func(v *View, emit Emit) { emit(float64(read(v))) }
}

// Bit returns 1 for true and 0 for false.
func Bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
