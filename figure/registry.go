package figure

import (
	"reflect"
	"slices"
	"strings"
)

// Registry has the figures of a server, and the sources from which they read. Figures and sources
// must be added before the first View. After that, any goroutine may use the registry.
type Registry struct {
	figures []Figure
	parts   map[reflect.Type]func(v *View) any
}

// New returns a registry of figures, to which more can be added.
func New(figures ...Figure) *Registry {
	return &Registry{figures: figures, parts: make(map[reflect.Type]func(*View) any)}
}

// Add adds figures to the registry.
func (r *Registry) Add(figures ...Figure) { r.figures = append(r.figures, figures...) }

// All returns the figures in the order in which they were added. The caller must not modify them.
func (r *Registry) All() []Figure { return r.figures }

// View begins one reading of the server.
func (r *Registry) View() *View { return &View{registry: r, parts: make(map[reflect.Type]any)} }

// Provide sets read as the source of the type T, for [Of]. read is called at most once for each
// view, when a figure needs it.
func Provide[T any](r *Registry, read func(v *View) T) {
	r.parts[reflect.TypeFor[T]()] = func(v *View) any { return read(v) }
}

// View is one reading of a server. A source that several figures use is read only once. Only one
// goroutine may use a view.
type View struct {
	registry *Registry
	parts    map[reflect.Type]any
}

// Put sets part as the result of [Of] for the type T in this view, so that the source is not read.
func Put[T any](v *View, part T) { v.parts[reflect.TypeFor[T]()] = part }

// Of returns the value of the source of the type T in this view; the zero T if there is no source.
// It reads the source at the first call.
func Of[T any](v *View) (part T) {
	t := reflect.TypeFor[T]()
	if known, is := v.parts[t]; is {
		part, _ = known.(T)
		return part
	}
	if read := v.registry.parts[t]; read != nil {
		part, _ = read(v).(T)
		v.parts[t] = part
	}
	return part
}

// Sum returns the sum of the numbers of the figure called name whose label values match accepts; a
// nil match accepts all. The sum is 0 for a figure that does not exist or is absent.
func (v *View) Sum(name string, match func(labels []string) bool) (sum float64) {
	v.Each(name, func(value float64, labels ...string) {
		if match == nil || match(labels) {
			sum += value
		}
	})
	return sum
}

// Each calls emit for each number of the figure called name. It does nothing for a histogram.
func (v *View) Each(name string, emit Emit) {
	for i := range v.registry.figures {
		if f := &v.registry.figures[i]; f.Name == name && f.Read != nil {
			f.Read(v, emit)
		}
	}
}

// Between calls f for each number of the figures without labels whose names begin with prefix and end
// with suffix, in the order of the registry. name is the part of the name that is in between.
func (v *View) Between(prefix, suffix string, f func(name string, value float64)) {
	for i := range v.registry.figures {
		is := &v.registry.figures[i]
		name, ok := strings.CutPrefix(is.Name, prefix)
		if !ok || len(is.Labels) > 0 || is.Read == nil {
			continue
		}
		if name, ok = strings.CutSuffix(name, suffix); ok {
			is.Read(v, func(value float64, _ ...string) { f(name, value) })
		}
	}
}

// Max returns the largest number of the figure called name, or 0 if that is negative or the figure
// is absent.
func (v *View) Max(name string) (most float64) {
	v.Each(name, func(value float64, _ ...string) { most = max(most, value) })
	return most
}

// Value returns the number of the figure called name whose label values are labels. ok is false if
// there is none.
func (v *View) Value(name string, labels ...string) (value float64, ok bool) {
	sum := v.Sum(name, func(is []string) bool {
		if slices.Equal(is, labels) {
			ok = true
			return true
		}
		return false
	})
	return sum, ok
}

// Field returns the number of the figure without labels that the field called name in section
// shows; 0 if there is none. Read functions of other figures may call it.
func (v *View) Field(section, name string) (value int64) {
	for i := range v.registry.figures {
		f := &v.registry.figures[i]
		if len(f.Labels) == 0 && f.Info != nil && f.Info.Section == section && f.Info.Field(nil) == name {
			f.Read(v, func(n float64, _ ...string) { value = int64(n) })
		}
	}
	return value
}

// Fields calls f with the name and the value of each field in a section of INFO.
func (v *View) Fields(section string, f func(name string, value int64)) {
	for i := range v.registry.figures {
		is := &v.registry.figures[i]
		if is.Info == nil || is.Info.Section != section {
			continue
		}
		is.Read(v, func(value float64, labels ...string) {
			if name := is.Info.Field(labels); name != "" {
				f(name, int64(value))
			}
		})
	}
}
