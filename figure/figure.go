package figure

// Kind is the type of a figure, with the name that Prometheus has for it.
type Kind string

// These are the types of figures.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
)

// Figure is an entry of the registry: a number, or one number for each combination of label values.
type Figure struct {
	// Name is the name of the figure in the metrics, without the prefix cellserver_. A figure
	// without a name is only in INFO.
	Name string
	// Bare says that Name is the whole name, because it belongs to a metric of another program.
	Bare   bool
	Kind   Kind
	Labels []string
	Help   string
	Values string // possible values of the labels, as the documentation shows them
	// Bound is the maximum number of values of the first label that have their own series, for
	// values that clients determine. The other values are counted together as "other". 0 means that
	// the values need no bound.
	Bound int
	// Own says that the values of the first label do not count for the bound that all figures with
	// a Bound share.
	Own bool
	// Info defines the fields of INFO that show the figure; nil if there are none.
	Info *Info
	// Read calls emit for each number of the figure, with the values of Labels. If Read does not
	// call emit, the figure is absent.
	Read func(v *View, emit Emit)
	// Spread is used instead of Read for a histogram.
	Spread func(v *View, emit func(b Buckets, labels ...string))
}

// Emit receives a number of a figure with the values of its labels.
type Emit func(value float64, labels ...string)

// Buckets is a histogram: the number of values, their sum, and for each bound the number of values
// that are at most the bound.
type Buckets struct {
	Count, Sum float64
	Below      map[float64]uint64
}

// Info says how INFO shows a figure. INFO shows the number without its fraction.
type Info struct {
	Section string // the name of the section of INFO, such as "Stats"
	// Field returns the name of the field for a number with the values labels; "" if no field shows
	// it.
	Field func(labels []string) string
}

// Field returns an Info with a single field, which is called name and is in section, for a figure
// without labels.
func Field(section, name string) *Info {
	return &Info{section, func([]string) string { return name }}
}

// Fields returns an Info with fields in section, for a figure with one label. names has the name of
// the field for each value of the label; a value that is not in names has no field.
func Fields(section string, names map[string]string) *Info {
	return &Info{section, func(labels []string) string { return names[labels[0]] }}
}

// Prefixed returns an Info with fields in section, for a figure with one label. The name of each
// field is prefix followed by the value of the label.
func Prefixed(section, prefix string) *Info {
	return &Info{section, func(labels []string) string { return prefix + labels[0] }}
}

// Shown returns a figure without labels that only INFO shows, as field in section. read is its Read
// function.
func Shown(section, field string, read func(v *View, emit Emit)) Figure {
	return Figure{Info: Field(section, field), Read: read}
}

// One returns the Read function of a figure without labels, whose number read returns.
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
