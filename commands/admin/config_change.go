package admin

import (
	"slices"
	"strings"

	"github.com/cellserver/cellserver/env"
)

// valuesOf returns the names and current values of the options that pairs names, in the order of
// the table of options. It leaves out names of no option.
func valuesOf(settings env.Settings, pairs [][2]string) [][2]string {
	names := make([]string, len(pairs))
	for i, p := range pairs {
		names[i] = strings.ToLower(p[0])
	}
	return settings.Get(func(name string) bool { return slices.Contains(names, name) })
}

// changedOptions returns a text with the options whose values in before and after differ; "" if no
// values differ. If the values are long or may be secrets, it shows only the name of the option.
func changedOptions(before, after [][2]string) string {
	var text []string
	for i, p := range after {
		switch {
		case i >= len(before) || before[i] == p:
		case maySayValue(p[0]) && len(before[i][1])+len(p[1]) <= mostSaid:
			text = append(text, p[0]+" "+sayValue(before[i][1])+" → "+sayValue(p[1]))
		default:
			text = append(text, p[0])
		}
	}
	return strings.Join(text, ", ")
}

// mostSaid is the maximum length in bytes of the old and the new value of an option together, for
// which changedOptions shows both values.
const mostSaid = 64

// maySayValue reports whether the value of the option called name may be shown. It is false if a
// part of the name suggests that the value is a secret.
func maySayValue(name string) bool {
	return !slices.ContainsFunc([]string{"pass", "auth", "store", "user", "secret"}, func(part string) bool { return strings.Contains(name, part) })
}

func sayValue(value string) string {
	if value == "" {
		return "(empty)"
	}
	return value
}
