package loadgen

import (
	"errors"
	"math/rand/v2"
)

// Mix is a set of templates that a run sends, each in proportion to its weight.
type Mix struct {
	templates []*Template
	// steps are the cumulative sums of the weights.
	steps []int
	total int
}

// NewMix returns a mix of templates. Without templates it returns an error.
func NewMix(templates ...*Template) (*Mix, error) {
	if len(templates) == 0 {
		return nil, errors.New("there is no command to send")
	}
	m := &Mix{templates: templates}
	for _, t := range templates {
		m.total += t.weight
		m.steps = append(m.steps, m.total)
	}
	return m, nil
}

// ParseMix parses one template from each line. It returns the error of ParseTemplate or NewMix.
func ParseMix(lines []string, shape Shape) (*Mix, error) {
	templates := make([]*Template, 0, len(lines))
	for _, line := range lines {
		t, err := ParseTemplate(line, shape)
		if err != nil {
			return nil, err
		}
		templates = append(templates, t)
	}
	return NewMix(templates...)
}

// Templates returns the templates of the mix.
func (m *Mix) Templates() []*Template { return m.templates }

// draw chooses a template by weight and one of its quantities at random. It returns their indexes.
func (m *Mix) draw(r *rand.Rand) (command, pick int) {
	if len(m.templates) > 1 {
		n := r.IntN(m.total)
		for m.steps[command] <= n {
			command++
		}
	}
	if forms := len(m.templates[command].forms); forms > 1 {
		pick = r.IntN(forms)
	}
	return command, pick
}
