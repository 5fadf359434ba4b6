package config

import (
	"fmt"
	"strings"
)

// metricsOptions returns the options about the detail of metrics.
func metricsOptions() []option {
	return []option{
		{name: "metrics-group-by", def: "prefix :", kind: groupBy{}, doc: "How the metrics group keys: prefix and a delimiter of up to 8 bytes make the text before the delimiter the group, and none makes no groups."},
		{name: "metrics-max-groups", def: "100", kind: integer{0, 200, ""}, doc: "Maximum number of groups that are counted by name: the first ones with about 16 calls. The others are counted together."},
		{name: "metrics-near-limit", def: "80", kind: integer{1, 99, ""}, mutable: true, doc: "Percentage of the limit that is in use when an allowed call counts as near the limit."},
	}
}

// groupBy is the kind of metrics-group-by: none, or prefix and a delimiter of 1 to maxDelimiter
// bytes.
type groupBy struct{}

// maxDelimiter is the maximum length of the delimiter of groups, in bytes.
const maxDelimiter = 8

func (groupBy) parse(v string) (string, error) {
	kind, delimiter, _ := strings.Cut(strings.TrimSpace(v), " ")
	delimiter = strings.TrimSpace(delimiter)
	switch {
	case strings.EqualFold(kind, "none") && delimiter == "":
		return "none", nil
	case !strings.EqualFold(kind, "prefix") || delimiter == "" || len(delimiter) > maxDelimiter:
		return "", fmt.Errorf("argument must be none, or prefix and a delimiter of 1 to %d bytes", maxDelimiter)
	}
	if _, err := (text{}).parse(delimiter); err != nil {
		return "", err
	}
	return "prefix " + delimiter, nil
}

func (groupBy) hint() string { return "none|prefix delimiter" }
