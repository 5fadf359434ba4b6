package libraries

import (
	"errors"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/pattern"
	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

// start returns a matcher that uses the script's budget of pattern steps. Each step also counts as
// an instruction, and is charged while the match runs, not only at its end: one call of string.find
// may take a second, and like a loop in Lua it must be able to yield to other clients or be killed.
func (r *Runtime) start(subject, source string) *pattern.Matcher {
	m := &pattern.Matcher{Subject: subject, Pattern: source, Steps: r.Guard.Patterns}
	m.Poll = func() (end bool) {
		r.charge(m)
		return !r.Guard.MayGoOn()
	}
	return m
}

// charge counts the steps that m has made since the last call of charge.
func (r *Runtime) charge(m *pattern.Matcher) {
	r.Guard.Spend(int(r.Guard.Patterns - m.Steps))
	r.Guard.Patterns = m.Steps
}

// try matches the pattern of m from index p with the subject from index s, and returns the end of
// the match or -1. It raises an error if the pattern is invalid or the budget is used up.
func (r *Runtime) try(l *glua.LState, m *pattern.Matcher, s, p int) int {
	end, err := m.Match(s, p)
	r.charge(m)
	if err != nil {
		r.Guard.Stop(l)
		if errors.Is(err, pattern.ErrBudget) {
			// No budget is left, so the script gains nothing by catching the error.
			r.Guard.Patterns = -1
		}
		sandbox.Raisef(l, "%s", err.Error())
	}
	return end
}

// capturedAt returns capture i, from 0 on, of the match from start to end. If the pattern has no
// captures, capture 0 is the whole match. An invalid i raises an error.
func (r *Runtime) capturedAt(l *glua.LState, m *pattern.Matcher, i, start, end int) glua.LValue {
	text, place, err := m.Capture(i, start, end)
	if err != nil {
		sandbox.Raisef(l, "%s", err.Error())
	}
	if place > 0 {
		return value.Number(int64(place))
	}
	return glua.LString(text)
}

// pushCaptures pushes all captures of the match from start to end and returns their number. If
// there are none and whole is true, it pushes the whole match.
func (r *Runtime) pushCaptures(l *glua.LState, m *pattern.Matcher, start, end int, whole bool) int {
	n := m.Captures()
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		l.Push(r.capturedAt(l, m, i, start, end))
	}
	return n
}

func (r *Runtime) find(l *glua.LState) int  { return r.search(l, true) }
func (r *Runtime) match(l *glua.LState) int { return r.search(l, false) }

func (r *Runtime) search(l *glua.LState, find bool) int {
	subject, pattern := sandbox.CheckText(l, 1), sandbox.CheckText(l, 2)
	begin := int(relative(sandbox.OptInt(l, 3, 1), len(subject))) - 1
	begin = min(max(begin, 0), len(subject))
	if find && (l.ToBool(4) || !strings.ContainsAny(pattern, "^$*+?.([%-")) {
		r.Guard.Step(l, (len(subject)-begin)/64)
		at := strings.Index(subject[begin:], pattern)
		if at < 0 {
			l.Push(glua.LNil)
			return 1
		}
		l.Push(value.Number(int64(begin + at + 1)))
		l.Push(value.Number(int64(begin + at + len(pattern))))
		return 2
	}
	m := r.start(subject, pattern)
	p := 0
	anchored := strings.HasPrefix(pattern, "^")
	if anchored {
		p = 1
	}
	for s := begin; s <= len(subject); s++ {
		if end := r.try(l, m, s, p); end >= 0 {
			if find {
				l.Push(value.Number(int64(s) + 1))
				l.Push(value.Number(int64(end)))
				return 2 + r.pushCaptures(l, m, s, end, false)
			}
			return r.pushCaptures(l, m, s, end, true)
		}
		if anchored {
			break
		}
	}
	l.Push(glua.LNil)
	return 1
}

// relative returns at, an index counted from 1, or its equivalent if it is negative and counts from
// the end. It returns 0 for an index before the beginning. It corresponds to posrelat of Lua's
// string library.
func relative(at int64, length int) int64 {
	if at < 0 {
		at += int64(length) + 1
		if at < 0 {
			return 0
		}
	}
	return at
}

func (r *Runtime) gmatch(l *glua.LState) int {
	subject, pattern := sandbox.CheckText(l, 1), sandbox.CheckText(l, 2)
	next := 0
	l.Push(l.NewFunction(func(l *glua.LState) int {
		m := r.start(subject, pattern)
		for s := next; s <= len(subject); s++ {
			end := r.try(l, m, s, 0)
			if end < 0 {
				continue
			}
			next = end
			if end == s {
				next++
			}
			return r.pushCaptures(l, m, s, end, true)
		}
		next = len(subject) + 1
		return 0
	}))
	return 1
}

func (r *Runtime) gsub(l *glua.LState) int {
	subject, pattern := sandbox.CheckText(l, 1), sandbox.CheckText(l, 2)
	replacement := l.Get(3)
	switch replacement.Type() {
	case glua.LTNumber, glua.LTString, glua.LTFunction, glua.LTTable:
	default:
		sandbox.ArgError(l, 3, "string/function/table expected")
	}
	most := sandbox.OptInt(l, 4, int64(len(subject))+1)
	m := r.start(subject, pattern)
	p := 0
	anchored := strings.HasPrefix(pattern, "^")
	if anchored {
		p = 1
	}
	b := r.Guard.NewBuilder(l)
	s, count := 0, int64(0)
	for count < most {
		end := r.try(l, m, s, p)
		if end >= 0 {
			count++
			r.replace(l, m, s, end, replacement, &b)
		}
		switch {
		case end > s:
			s = end
		case s < len(subject):
			b.Put(subject[s])
			s++
		default:
			s++
		}
		if s > len(subject) || anchored {
			break
		}
	}
	if s < len(subject) {
		b.WriteString(subject[s:])
	}
	l.Push(b.Value())
	l.Push(value.Number(count))
	return 2
}

// replace appends the replacement of the match from start to end to b. with is the third argument
// of gsub: a function, a table, or a template. A result of nil or false keeps the match. Any other
// result that is neither a string nor a number raises an error.
func (r *Runtime) replace(l *glua.LState, m *pattern.Matcher, start, end int, with glua.LValue, b *sandbox.Builder) {
	var v glua.LValue
	switch with := with.(type) {
	case *glua.LFunction:
		// The function may match patterns, too, with the same budget.
		l.Push(with)
		n := r.pushCaptures(l, m, start, end, true)
		l.Call(n, 1)
		v = l.Get(-1)
		l.Pop(1)
		m.Steps = r.Guard.Patterns
	case *glua.LTable:
		v = l.GetTable(with, r.capturedAt(l, m, 0, start, end))
	default:
		text, _ := value.Text(with)
		r.template(l, m, start, end, text, b)
		return
	}
	if glua.LVIsFalse(v) {
		b.WriteString(m.Subject[start:end])
		return
	}
	text, ok := value.Text(v)
	if !ok {
		sandbox.Raisef(l, "invalid replacement value (a %s)", sandbox.NameOf(v))
	}
	b.WriteString(text)
}

// template appends text, a replacement in which %0 to %9 stand for the match and its captures.
func (r *Runtime) template(l *glua.LState, m *pattern.Matcher, start, end int, text string, b *sandbox.Builder) {
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.Put(text[i])
			continue
		}
		i++
		switch {
		case i >= len(text):
			// Lua 5.1 appends the NUL at the end of its C string.
			b.Put(0)
		case !value.IsDigit(text[i]):
			b.Put(text[i])
		case text[i] == '0':
			b.WriteString(m.Subject[start:end])
		default:
			captured, _ := value.Text(r.capturedAt(l, m, int(text[i]-'1'), start, end))
			b.WriteString(captured)
		}
	}
}
