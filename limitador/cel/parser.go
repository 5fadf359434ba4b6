package cel

import (
	"errors"
	"fmt"
	"strconv"
)

// These are the bounds of an expression.
const (
	// MaxSource is the maximum length of its text in bytes.
	MaxSource = 4096
	// maxNodes is the maximum number of its parts, and maxDepth that of parts inside of each other.
	maxNodes = 256
	maxDepth = 32
)

// Limit has what a condition may look at of its limit. A nil text stands for null.
type Limit struct{ Name, ID *string }

// Condition parses the text of a condition of a limit. Its value is true or false.
func Condition(source string, of Limit) (*Expr, error) {
	e, err := parse(source, &of)
	if err == nil && e.root.kind != isBool {
		err = fmt.Errorf("a condition must be true or false, not %s", e.root.kind)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Variable parses the text of a variable, which must not look at its limit. Its value is text, a number, true or
// false, or null.
func Variable(source string) (*Expr, error) {
	e, err := parse(source, nil)
	if err == nil && e.root.kind > isText {
		err = fmt.Errorf("a variable must not be %s", e.root.kind)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// parser parses one expression.
type parser struct {
	lexer lexer
	at    token
	limit *Limit // nil for a variable
	nodes int
	depth int
	err   error
}

func parse(source string, of *Limit) (*Expr, error) {
	if len(source) > MaxSource {
		return nil, fmt.Errorf("an expression has at most %d bytes", MaxSource)
	}
	p := parser{lexer: lexer{rest: source}, limit: of}
	p.next()
	root := p.or()
	if p.err == nil && p.at.class != end {
		p.unexpected()
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Expr{source: source, root: root, nodes: p.nodes}, nil
}

// fail keeps the first error. After an error all tokens are the end, so that the parser comes to an end.
func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.at, p.lexer.rest = token{}, ""
}

// next goes on to the next token.
func (p *parser) next() {
	t, err := p.lexer.next()
	if p.at = t; err != nil {
		p.fail(err)
	}
}

func (p *parser) unexpected() { p.fail(fmt.Errorf("%s is not supported here", p.at)) }

// is goes on if the token is the given sign, and reports whether it is.
func (p *parser) is(s string) bool {
	if p.at.class != sign || p.at.is != s {
		return false
	}
	p.next()
	return true
}

// need goes on if the token is the given sign. Otherwise it is an error.
func (p *parser) need(s string) {
	if !p.is(s) {
		p.fail(fmt.Errorf("%q is missing before %s", s, p.at))
	}
}

// enter begins a part inside of another one. Each call is followed by one of leave.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail(fmt.Errorf("an expression has at most %d parts inside of each other", maxDepth))
	}
}

func (p *parser) leave() { p.depth-- }

// node returns a node with the parts a and b, which must have the types that is says. b may be nil.
func (p *parser) node(o op, k kind, a, b *node) *node {
	return p.add(&node{op: o, kind: k, a: a, b: b})
}

func (p *parser) add(n *node) *node {
	if p.nodes++; p.nodes > maxNodes {
		p.fail(fmt.Errorf("an expression has at most %d parts", maxNodes))
	}
	return n
}

func (p *parser) constant(k kind, v value) *node {
	return p.add(&node{op: constant, kind: k, value: v})
}

// want makes it an error that n is not of type k. what names n.
func (p *parser) want(n *node, k kind, what string) {
	if n.kind != k {
		p.fail(fmt.Errorf("%s must be %s, not %s", what, k, n.kind))
	}
}

func (p *parser) or() *node {
	p.enter()
	defer p.leave()
	n := p.and()
	for p.is("||") {
		n = p.node(or, isBool, n, p.and())
		p.want(n.a, isBool, "the left side of ||")
		p.want(n.b, isBool, "the right side of ||")
	}
	return n
}

func (p *parser) and() *node {
	n := p.relation()
	for p.is("&&") {
		n = p.node(and, isBool, n, p.relation())
		p.want(n.a, isBool, "the left side of &&")
		p.want(n.b, isBool, "the right side of &&")
	}
	return n
}

// relations has the operations that compare.
var relations = map[string]op{"==": equal, "!=": unequal, "<": less, "<=": lessOrEqual, ">": greater, ">=": greaterOrEqual}

func (p *parser) relation() *node {
	n := p.sum()
	for {
		is := p.at.is
		o, ok := relations[is]
		switch {
		case p.at.class == sign && ok:
			p.next()
			n = p.node(o, isBool, n, p.sum())
			p.compared(n, is)
		case p.at.class == name && is == "in":
			p.next()
			n = p.in(n, p.sum())
		default:
			return n
		}
	}
}

// compared makes it an error that n compares what cannot be compared. is is its sign.
func (p *parser) compared(n *node, is string) {
	a, b := n.a.kind, n.b.kind
	ok := a == b && (a == isText || a == isNumber)
	if n.op == equal || n.op == unequal {
		ok = a <= isText && b <= isText && (a == b || a == isNull || b == isNull)
	}
	if !ok {
		p.fail(fmt.Errorf("%s does not compare %s with %s", is, a, b))
	}
}

// in returns the node for "a in b".
func (p *parser) in(a, b *node) *node {
	switch b.kind {
	case isMap:
		p.want(a, isText, "the key before in")
		return p.node(inMap, isBool, a, b)
	case isList:
		for _, item := range b.items {
			if a.kind > isText || item.kind != a.kind && item.kind != isNull && a.kind != isNull {
				p.fail(fmt.Errorf("in does not compare %s with %s", a.kind, item.kind))
			}
		}
	default:
		p.fail(fmt.Errorf("behind in must be a list or a descriptor, not %s", b.kind))
	}
	return p.node(inList, isBool, a, b)
}

func (p *parser) sum() *node {
	n := p.unary()
	for p.is("+") {
		b := p.unary()
		if n.kind != isNumber && n.kind != isText {
			p.fail(fmt.Errorf("+ does not add %s", n.kind))
		}
		p.want(b, n.kind, "the right side of +")
		n = p.node(add, n.kind, n, b)
	}
	return n
}

func (p *parser) unary() *node {
	if !p.is("!") {
		return p.member()
	}
	p.enter()
	defer p.leave()
	n := p.node(not, isBool, p.unary(), nil)
	p.want(n.a, isBool, "what follows !")
	return n
}

// member parses a primary with the fields, indexes and calls behind it.
func (p *parser) member() *node {
	n := p.primary()
	for {
		switch {
		case p.is("["):
			i := p.or()
			p.need("]")
			n = p.index(n, i)
		case p.is("."):
			is := p.name()
			if p.is("(") {
				n = p.method(n, is)
			} else {
				n = p.index(n, p.constant(isText, value{text: []byte(is)}))
			}
		default:
			return n
		}
	}
}

// name takes a name.
func (p *parser) name() string {
	if p.at.class != name {
		p.unexpected()
		return ""
	}
	is := p.at.is
	p.next()
	return is
}

// index returns the node for a[i].
func (p *parser) index(a, i *node) *node {
	switch a.kind {
	case isDescriptors:
		p.want(i, isNumber, "the index of descriptors")
		return p.node(descriptor, isMap, a, i)
	case isMap:
		p.want(i, isText, "the key of a descriptor")
	default:
		p.fail(fmt.Errorf("%s has no fields", a.kind))
	}
	return p.node(field, isText, a, i)
}

// methods have one argument, which is text, as is what they are called on.
var methods = map[string]op{"startsWith": startsWith, "endsWith": endsWith, "contains": contains}

// method parses the arguments of a call of a method of a, and returns its node.
func (p *parser) method(a *node, is string) *node {
	if is == "size" {
		p.need(")")
		return p.size(a)
	}
	o, ok := methods[is]
	if !ok {
		p.fail(fmt.Errorf("the function %s is not supported", is))
	}
	b := p.or()
	p.need(")")
	p.want(a, isText, "what "+is+" is called on")
	p.want(b, isText, "the argument of "+is)
	return p.node(o, isBool, a, b)
}

func (p *parser) size(a *node) *node {
	if a.kind < isText {
		p.fail(fmt.Errorf("%s has no size", a.kind))
	}
	return p.node(size, isNumber, a, nil)
}

var errLimit = errors.New("of its limit a condition can look at limit.name and limit.id, and a variable at nothing")

// primary parses a constant, a name, a call of a function, a list or an expression in parentheses.
func (p *parser) primary() *node {
	t := p.at
	switch t.class {
	case text:
		p.next()
		return p.constant(isText, value{text: []byte(t.is)})
	case number:
		p.next()
		n, err := strconv.ParseInt(t.is, 10, 64)
		if err != nil {
			p.fail(fmt.Errorf("the number %s is too large", t.is))
		}
		return p.constant(isNumber, value{number: n})
	case name:
		p.next()
		if p.is("(") {
			return p.call(t.is)
		}
		return p.word(t.is)
	}
	switch {
	case p.is("("):
		n := p.or()
		p.need(")")
		return n
	case p.is("["):
		return p.list()
	}
	p.unexpected()
	return p.constant(isNull, value{})
}

// word returns the node of a name that is no function.
func (p *parser) word(is string) *node {
	switch is {
	case "true", "false":
		return p.constant(isBool, truth(is == "true"))
	case "null":
		return p.constant(isNull, value{})
	case "descriptors":
		return p.add(&node{op: descriptors, kind: isDescriptors})
	case "limit":
		return p.ofLimit()
	}
	p.fail(fmt.Errorf("the name %s is not known: there are descriptors and, in conditions, limit", is))
	return p.constant(isNull, value{})
}

// ofLimit parses what follows the name limit, and returns its value.
func (p *parser) ofLimit() *node {
	var is *string
	switch field := p.limitField(); {
	case p.limit == nil || field != "name" && field != "id":
		p.fail(errLimit)
	case field == "name":
		is = p.limit.Name
	default:
		is = p.limit.ID
	}
	if is == nil {
		return p.constant(isNull, value{})
	}
	return p.constant(isText, value{text: []byte(*is)})
}

// limitField takes .name or ["name"], and returns the name, or "" if there is none.
func (p *parser) limitField() (field string) {
	if p.is("[") {
		if p.at.class == text {
			field = p.at.is
		}
		p.next()
		p.need("]")
		return field
	}
	if !p.is(".") {
		return ""
	}
	return p.name()
}

// call parses the arguments of a call of a function, and returns its node.
func (p *parser) call(is string) *node {
	switch is {
	case "size":
		n := p.size(p.or())
		p.need(")")
		return n
	case "has":
		n := p.or()
		p.need(")")
		if n.op != field || n.b.op != constant {
			p.fail(errors.New("has is for a field of a descriptor, such as has(descriptors[0].key)"))
		}
		return p.node(has, isBool, n.a, n.b)
	}
	p.fail(fmt.Errorf("the function %s is not supported", is))
	return p.constant(isNull, value{})
}

// list parses the elements of a list.
func (p *parser) list() *node {
	n := p.add(&node{op: list, kind: isList})
	for p.err == nil && !p.is("]") {
		if n.items = append(n.items, p.or()); !p.is(",") {
			p.need("]")
			break
		}
	}
	return n
}
