package rls

// Options are the options of the service as a whole. The zero value has the options of ratelimit.
type Options struct {
	// Together charges, if a descriptor would be over its limit, only those that would be: see [Plan.Together].
	Together bool
	// Shadow makes every answer OK as a whole.
	Shadow bool
	// Quota treats all descriptors as if they had quota_mode.
	Quota bool
	// Headers and Metadata say whether answers have header fields and dynamic metadata.
	Headers, Metadata bool
	// Near is the percentage of a limit, at most 100, beyond which hits are near it: see [Hits].
	Near int
}

// Charge is a call of a policy that a request leads to.
type Charge struct {
	// Descriptor is the index of the descriptor.
	Descriptor int
	// Policy and Key are the policy and the key of the call. Policy must not be changed.
	Policy, Key []byte
	// Hits is the quantity of the call, at least 0.
	Hits int64
	// Own is the limit that replaces the limits of the policy, which then need not exist. It is the zero value if there
	// is none.
	Own Window
	// Note says that the call has to be forced: see [Plan.note].
	Note bool
}

// Window is a limit of Most units, at least 0, in each window of Seconds, at least 1. Windows begin at multiples of their
// length since 1970.
type Window struct{ Most, Seconds int64 }

// Plan says what a request charges. A front keeps a Plan for its requests, one after another. The zero Plan is
// ready for use.
type Plan struct {
	// Charges are the calls, in the order of the descriptors. They have to be decided in this order, at one instant:
	// two of them may have the same policy and key. They are valid until the next request.
	Charges []Charge

	config  *Config
	request *Request
	// subjects has an element for each descriptor.
	subjects []subject
	keys     []byte
	path     []visit
	texts    []byte
}

// Bytes returns the memory that p keeps for keys and texts of requests, in bytes.
func (p *Plan) Bytes() int { return cap(p.keys) + cap(p.texts) }

// subject has the limit that applies to a descriptor.
type subject struct {
	// rule is the rule that applies; nil if there is none, or if the limit comes from the request.
	rule *Rule
	// unit and requests are the limit that comes from the request; unit is 0 if there is none.
	unit     Unit
	requests uint32
	// charges is the number of charges of the descriptor: 2 for a limit of 0, and otherwise 1 or 0.
	charges int
	// over says that the descriptor would be over its limit: see [Plan.Together].
	over bool
}

// Plan sets p to what r charges. c is nil if no rules were loaded. It returns the errors of requests: see
// [ErrNoConfig]. After an error p must not be used.
func (c *Config) Plan(r *Request, p *Plan) error {
	p.Charges, p.subjects, p.keys = p.Charges[:0], p.subjects[:0], p.keys[:0]
	p.config, p.request = c, r
	if err := r.check(); err != nil {
		return err
	}
	if c == nil {
		return ErrNoConfig
	}
	d := c.domains[string(r.Domain)]
	replaces := false
	for i := range r.Descriptors {
		p.subjects = append(p.subjects, subject{})
		if d == nil {
			continue
		}
		if err := p.add(d, i); err != nil {
			return err
		}
		rule := p.subjects[i].rule
		replaces = replaces || rule != nil && len(rule.Limit.Replaces) > 0
	}
	if replaces {
		p.replace()
	}
	return nil
}

// add adds descriptor i of the domain d, with its charges. The error is [ErrUnit].
func (p *Plan) add(d *domain, i int) error {
	is, s := &p.request.Descriptors[i], &p.subjects[i]
	rule := p.match(d, is.Entries)
	c := Charge{Descriptor: i, Hits: p.request.hits(i)}
	from := len(p.keys)
	switch {
	case is.HasOwn:
		unit := is.Own.unit()
		if unit == 0 {
			return ErrUnit
		}
		s.unit, s.requests = unit, is.Own.Requests
		c.Own = Window{int64(is.Own.Requests), unit.Seconds()}
		switch {
		case rule == nil:
			c.Policy, p.keys = d.request, appendRequestKey(p.keys, is.Entries, unit)
		case rule.Limit.Unit == unit:
			c.Policy, p.keys = rule.policy, p.appendKey(p.keys, true, 0)
		default:
			c.Policy, p.keys = rule.policy, p.appendKey(p.keys, true, unit)
		}
	case rule == nil:
		return nil
	default:
		s.rule = rule
		c.Policy, p.keys = rule.policy, p.appendKey(p.keys, false, 0)
	}
	c.Key = p.keys[from:len(p.keys):len(p.keys)]
	p.Charges = append(p.Charges, c)
	if s.charges = 1; s.isZero() {
		p.note(d, &c, s.window())
		s.charges = 2
	}
	return nil
}

// isZero reports whether the limit of s is 0.
func (s *subject) isZero() bool {
	if s.rule == nil {
		return s.requests == 0
	}
	return s.rule.Limit.Requests == 0 && !s.rule.Limit.Unlimited
}

// window returns the unit of the limit of s.
func (s *subject) window() Unit {
	if s.rule == nil {
		return s.unit
	}
	return s.rule.Limit.Unit
}

// note adds a charge that notes whether there were hits in the window of c, a charge of a limit of 0. Such a limit
// denies all hits and keeps no state. But a call of 0 hits is over the limit only if there were others before it in
// the window, so these have to be kept. The note is one of the policy for limits of requests.
func (p *Plan) note(d *domain, c *Charge, unit Unit) {
	from := len(p.keys)
	p.keys = append(p.keys, c.Policy...)
	p.keys = append(p.keys, "%0"...)
	p.keys = BoundKey(append(p.keys, c.Key...), from)
	p.Charges = append(p.Charges, Charge{
		Descriptor: c.Descriptor, Policy: d.request, Key: p.keys[from:len(p.keys):len(p.keys)], Hits: c.Hits,
		Own: Window{1, unit.Seconds()}, Note: true,
	})
}

// replace takes away the limits that others of the request replace.
func (p *Plan) replace() {
	kept := p.Charges[:0]
	for _, c := range p.Charges {
		if s := &p.subjects[c.Descriptor]; p.replaced(s.rule) {
			s.charges = 0
		} else {
			kept = append(kept, c)
		}
	}
	p.Charges = kept
}

// replaced reports whether a rule of the request replaces the name of rule, which may be nil.
func (p *Plan) replaced(rule *Rule) bool {
	if rule == nil || rule.Limit.Name == "" {
		return false
	}
	for i := range p.subjects {
		if by := p.subjects[i].rule; by != nil {
			for _, name := range by.Limit.Replaces {
				if name == rule.Limit.Name {
					return true
				}
			}
		}
	}
	return false
}

// Together changes the plan for [Options.Together]. looked are the decisions on the charges by calls that charge
// nothing, each as if it were the only one. If a descriptor is over its limit, those that are not charge nothing.
func (p *Plan) Together(looked []Decision) {
	over := false
	for i, next := 0, 0; i < len(p.subjects); i++ {
		s := &p.subjects[i]
		s.over = s.charges > 0 && isOver(looked[next:next+s.charges])
		over = over || s.over
		next += s.charges
	}
	if !over {
		return
	}
	for i := range p.Charges {
		if c := &p.Charges[i]; !p.subjects[c.Descriptor].over {
			c.Hits = 0
		}
	}
}

// isOver reports whether the decisions on the charges of one descriptor say that it is over its limit.
func isOver(of []Decision) bool {
	return of[0].Over || len(of) > 1 && of[0].Limit == 0 && of[1].Remaining == 0
}
