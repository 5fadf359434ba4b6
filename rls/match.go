package rls

import "bytes"

// visit is a step that an entry has matched.
type visit struct {
	step *step
	// from and to are the range of "key_value" in the texts of the plan.
	from, to int
	// whole says that "key_value" equals the text of the step or fits its pattern. Otherwise only the key does.
	whole bool
}

// find returns the step that the entry with the given key and "key_value" matches, or nil.
func (l *level) find(key, text []byte) (s *step, whole bool) {
	if s = l.steps[string(text)]; s != nil {
		return s, true
	}
	for _, s := range l.patterns {
		if s.pattern.Fits(text) {
			return s, true
		}
	}
	return l.steps[string(key)], false
}

// match sets p.path to the steps that the entries match, from the domain on. It returns the rule of the last one,
// or nil if there is no step for an entry, or no limit.
func (p *Plan) match(d *domain, entries []Entry) *Rule {
	p.path, p.texts = p.path[:0], p.texts[:0]
	at := &d.level
	var last *Rule
	for i := range entries {
		e := &entries[i]
		from := len(p.texts)
		p.texts = append(append(append(p.texts, e.Key...), '_'), e.Value...)
		s, whole := at.find(e.Key, p.texts[from:])
		if s == nil {
			return nil
		}
		p.path = append(p.path, visit{step: s, from: from, to: len(p.texts), whole: whole})
		at, last = &s.level, s.rule
	}
	return last
}

// part returns the part of a key for the entry that has matched v: "key_value" without the key of the step, which
// no other text of the step has. marked says that the part is a sign for the text of the step itself.
func (p *Plan) part(v *visit) (part []byte, marked bool) {
	text := p.texts[v.from:v.to]
	if v.step.prefix == nil {
		return text, false
	}
	part, found := bytes.CutPrefix(text, v.step.prefix)
	return part, !found
}
