package metrics

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cellserver/cellserver/figure"
)

// prefix is the beginning of the names of all metrics of this program.
const prefix = "cellserver_"

// NameOf returns the name of the metric that shows f.
func NameOf(f *figure.Figure) string {
	if f.Bare {
		return f.Name
	}
	return prefix + f.Name
}

// other is the label value for all values without a series of their own.
const other = "other"

// These are the bounds of the series of all metrics together.
const (
	// MaxSeries is the maximum number of series with the default of metrics-max-groups, whatever
	// clients do.
	MaxSeries = 640
	// SharedSeries is the maximum number of series for the values of bounded labels, such as
	// commands, users and codes, in total: the other metrics take the rest of MaxSeries. The values
	// that are seen first get a series.
	SharedSeries = 59
)

// collector implements prometheus.Collector.
type collector struct {
	registry *figure.Registry
	figures  []figure.Figure // the figures of the registry that have a name
	descs    []*prometheus.Desc
	log      *slog.Logger

	mu     sync.Mutex
	named  []map[string]bool // the values of bounded labels that have a series, by figure; guarded by mu
	shared int               // the number of these values; guarded by mu
}

// Named returns the figures that have a name.
func Named(all []figure.Figure) (named []figure.Figure) {
	for _, f := range all {
		if f.Name != "" {
			named = append(named, f)
		}
	}
	return named
}

func newCollector(registry *figure.Registry, log *slog.Logger) *collector {
	c := &collector{registry: registry, figures: Named(registry.All()), log: log}
	c.named = make([]map[string]bool, len(c.figures))
	for i, f := range c.figures {
		c.descs = append(c.descs, prometheus.NewDesc(NameOf(&f), f.Help, f.Labels, nil))
		c.named[i] = make(map[string]bool)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector. Only one scrape at a time reads the figures.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.registry.View()
	for i := range c.figures {
		f := &c.figures[i]
		send := func(made prometheus.Metric, err error) {
			if err != nil { // a label is not UTF-8, which must not fail the scrape
				c.log.Error("a metric cannot be shown", "metric", f.Name)
				return
			}
			to <- made
		}
		emit := func(value float64, labels ...string) {
			send(prometheus.NewConstMetric(c.descs[i], valueType(f.Kind), value, labels...))
		}
		switch {
		case f.Spread != nil:
			f.Spread(v, func(b figure.Buckets, labels ...string) {
				send(prometheus.NewConstHistogram(c.descs[i], uint64(b.Count), b.Sum, b.Below, labels...))
			})
		case f.Bound > 0:
			c.bounded(i, v, emit)
		default:
			f.Read(v, emit)
		}
	}
}

// bounded emits a figure with a series for each value of its first label. All values beyond the
// bound share the value "other", whose series has their sum. A value that has had a series keeps
// it.
func (c *collector) bounded(i int, v *figure.View, emit figure.Emit) {
	f, named := &c.figures[i], c.named[i]
	sums, order := make(map[string]float64), [][]string(nil)
	f.Read(v, func(value float64, labels ...string) {
		labels = slices.Clone(labels)
		labels[0] = safe(labels[0])
		if of := labels[0]; !named[of] && of != other {
			switch full := !f.Own && c.shared >= SharedSeries; {
			case full || len(named) >= f.Bound:
				labels[0] = other
			default:
				named[of] = true
				if !f.Own {
					c.shared++
				}
			}
		}
		key := strings.Join(labels, "\x00")
		if _, known := sums[key]; !known {
			order = append(order, labels)
		}
		sums[key] += value
	})
	for _, labels := range order {
		emit(sums[strings.Join(labels, "\x00")], labels...)
	}
}

func valueType(k figure.Kind) prometheus.ValueType {
	if k == figure.Counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// Handler returns a handler that serves the metrics in the format of Prometheus.
func Handler(figures *figure.Registry, log *slog.Logger) http.Handler {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(figures, log)) // MustRegister panics at the start if an entry is wrong
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError})
}

// maxScrapes is the maximum number of concurrent scrapes.
const maxScrapes = 8
