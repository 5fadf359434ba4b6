package metrics

import (
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// prefix begins the names of all metrics.
const prefix = "cellserver_"

// other is the value of a label for all that have none of their own.
const other = "other"

// collector implements prometheus.Collector.
type collector struct {
	figures func() Figures
	table   []Metric
	descs   []*prometheus.Desc
	log     *slog.Logger

	mu     sync.Mutex
	named  []map[string]bool // guarded by mu: by metric, the values of a bounded label
	shared int               // guarded by mu: how many these are
}

func newCollector(figures func() Figures, log *slog.Logger) *collector {
	c := &collector{figures: figures, table: Table(), log: log}
	c.named = make([]map[string]bool, len(c.table))
	for i, m := range c.table {
		c.descs = append(c.descs, prometheus.NewDesc(prefix+m.Name, m.Help, m.Labels, nil))
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

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	f := c.figures()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.table {
		m := &c.table[i]
		send := func(made prometheus.Metric, err error) {
			if err != nil { // a label that is not UTF-8 would be; it must not end the scrape
				c.log.Error("a metric cannot be shown", "metric", m.Name)
				return
			}
			to <- made
		}
		switch {
		case m.histogram != nil:
			m.histogram(&f, func(b buckets, labels ...string) {
				send(prometheus.NewConstHistogram(c.descs[i], uint64(b.count), b.sum, b.below, labels...))
			})
		case m.bound != nil:
			for of, value := range c.bounded(i, &f) {
				send(prometheus.NewConstMetric(c.descs[i], valueType(m.Kind), value, of))
			}
		default:
			m.values(&f, func(value float64, labels ...string) {
				send(prometheus.NewConstMetric(c.descs[i], valueType(m.Kind), value, labels...))
			})
		}
	}
}

// bounded returns the values of a metric by its only label, those beyond its bound together.
// Who has had a series keeps it.
func (c *collector) bounded(i int, f *Figures) map[string]float64 {
	m, named, sums := &c.table[i], c.named[i], make(map[string]float64)
	m.values(f, func(value float64, labels ...string) {
		of := safe(labels[0])
		if !named[of] && of != other {
			if len(named) >= m.bound.most || c.shared >= SharedSeries {
				of = other
			} else {
				named[of] = true
				c.shared++
			}
		}
		sums[of] += value
	})
	return sums
}

func valueType(k Kind) prometheus.ValueType {
	if k == Counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// Handler serves the metrics in the format of Prometheus. figures is called once for each
// scrape, one at a time.
func Handler(figures func() Figures, log *slog.Logger) http.Handler {
	var one sync.Mutex
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(func() Figures {
		one.Lock()
		defer one.Unlock()
		return figures()
	}, log)) // a mistake in the table is found at the start
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError})
}

// maxScrapes is how many scrapes are answered at once.
const maxScrapes = 8
