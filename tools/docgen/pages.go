package docgen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/config"
)

// Pages returns the content of every generated file by its path relative to root, the directory of
// the project.
func Pages(root string) (map[string]string, error) {
	table := commands.NewTable()
	page, err := CommandsPage(table)
	if err != nil {
		return nil, fmt.Errorf("writing the commands: %w", err)
	}
	measured, err := os.ReadFile(filepath.Join(root, "docs/performance.md"))
	if err != nil {
		return nil, fmt.Errorf("reading the measurements: %w", err)
	}
	performance, chart, err := Performance(string(measured))
	if err != nil {
		return nil, err
	}
	var sample strings.Builder
	if err := config.WriteSample(&sample); err != nil {
		return nil, fmt.Errorf("writing the sample configuration: %w", err)
	}
	var options strings.Builder
	if err := config.WriteOptions(&options); err != nil {
		return nil, fmt.Errorf("writing the options: %w", err)
	}
	keep, err := KeepPicture()
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"docs/options.md":      options.String(),
		"docs/commands.md":     page,
		"docs/metrics.md":      MetricsPage(),
		"docs/missing.md":      MissingPage(table),
		"docs/cellserver.conf": sample.String(),
		"docs/performance.md":  performance,
		"docs/" + chartFile:    chart,
		"docs/" + keepFile:     keep,
	}, nil
}
