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

// prefix begins the names of all metrics.
const prefix = "cellserver_"

// other is the value of a label for all that have none of their own.
const other = "other"

// Bounds of the series of all metrics together.
const (
	// MaxSeries is how many series there are at most with the default of metrics-max-groups,
	// whatever clients do.
	MaxSeries = 640
	// SharedSeries is how many values of bounded labels, such as commands, users and codes, have
	// series of their own, taken together: the rest of MaxSeries. The first that are seen have one.
	SharedSeries = 59
)

// collector implements prometheus.Collector.
type collector struct {
	registry *figure.Registry
	figures  []figure.Figure // of the registry, those with a name
	descs    []*prometheus.Desc
	log      *slog.Logger

	mu     sync.Mutex
	named  []map[string]bool // guarded by mu: by figure, the values of a bounded label
	shared int               // guarded by mu: how many these are
}

// Named are the figures of all that have a name.
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
		c.descs = append(c.descs, prometheus.NewDesc(prefix+f.Name, f.Help, f.Labels, nil))
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

// Collect implements prometheus.Collector. One scrape at a time looks at the server.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.registry.View()
	for i := range c.figures {
		f := &c.figures[i]
		send := func(made prometheus.Metric, err error) {
			if err != nil { // a label that is not UTF-8 would be; it must not end the scrape
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

// bounded emits a figure by the values of its labels, those of the first beyond its bound together.
// What has had a series keeps it.
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

// Handler serves the metrics in the format of Prometheus.
func Handler(figures *figure.Registry, log *slog.Logger) http.Handler {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(figures, log)) // a mistake in an entry is found at the start
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError})
}

// maxScrapes is how many scrapes are answered at once.
const maxScrapes = 8
