package report

import (
	_ "embed" // for the page
	"fmt"
	"html/template"
	"io"
	"time"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// handle is the data of the page's template.
type handle struct {
	*Report
	When         string
	Targets      []viewTarget
	LatencyChart template.HTML
	CPUChart     template.HTML
	Grids        []viewGrid
	Faults       []string
}

type viewTarget struct{ Name, Server, Address, Settings, Commands string }

type viewGrid struct {
	Title string
	Head  []viewCell
	Rows  [][]viewCell
}

type viewCell struct {
	Text string
	// Figure says that the cell is right-aligned.
	Figure bool
}

// HTML writes a report as one page that refers to nothing outside itself.
func (r *Report) HTML(w io.Writer) error {
	latency, err := latencyChart(r.Entries)
	if err != nil {
		return err
	}
	cpu, err := cpuChart(r.Entries)
	if err != nil {
		return err
	}
	v := handle{
		Report: r, When: r.Started.UTC().Format(time.RFC1123),
		// These charts are safe to include: they are generated here, and the SVG writer escapes
		// names in them.
		LatencyChart: template.HTML(latency), CPUChart: template.HTML(cpu),
	}
	for _, e := range r.Entries {
		v.Faults = append(v.Faults, e.Faults()...)
		for _, c := range e.Checks() {
			if c.Violated() {
				v.Faults = append(v.Faults, e.Name+": "+c.String())
			}
		}
		last := last(e)
		if last == nil {
			continue
		}
		t := viewTarget{
			Name: e.Name, Server: orUnknown(last.Server), Address: last.Address,
			Settings: settings(e),
		}
		for i := range last.Commands {
			if i > 0 {
				t.Commands += "; "
			}
			t.Commands += last.Commands[i].Command
		}
		v.Targets = append(v.Targets, t)
	}
	for _, g := range r.grids() {
		v.Grids = append(v.Grids, g.handle())
	}
	if err := page.Execute(w, v); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func (g *grid) handle() viewGrid {
	v := viewGrid{Title: g.title}
	cells := func(row []string) []viewCell {
		var out []viewCell
		for i, text := range row {
			out = append(out, viewCell{Text: text, Figure: g.isFigure(i)})
		}
		return out
	}
	v.Head = cells(g.head)
	for _, row := range g.rows {
		v.Rows = append(v.Rows, cells(row))
	}
	return v
}
