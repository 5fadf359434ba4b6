package libraries

import (
	"slices"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/compiler"
	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

func (r *Runtime) tableLibrary() map[string]glua.LGFunction {
	return map[string]glua.LGFunction{
		"concat": r.tableConcat, "foreach": r.foreach, "foreachi": r.foreachi, "getn": length, "insert": r.insert,
		"maxn": r.maxn, "remove": r.remove, "setn": setn, "sort": r.sort,
	}
}

func setn(l *glua.LState) int {
	sandbox.CheckTable(l, 1)
	sandbox.Raisef(l, "'setn' is obsolete")
	return 0
}

func (r *Runtime) insert(l *glua.LState) int {
	t := r.Writable(l, sandbox.CheckTable(l, 1))
	end := value.Length(t) + 1
	switch l.GetTop() {
	case 2:
		t.RawSet(glua.LNumber(end), l.Get(2))
	case 3:
		at := int(sandbox.CheckInt(l, 2))
		end = max(end, at)
		if at > 0 && end < value.ArrayMax && end <= t.Len()+1 {
			r.Guard.Step(l, (end-at)/16)
			t.Insert(at, l.Get(3))
			return 0
		}
		for i := end; i > at; i-- {
			r.Guard.Step(l, 1)
			t.RawSet(glua.LNumber(i), t.RawGet(glua.LNumber(i-1)))
		}
		t.RawSet(glua.LNumber(at), l.Get(3))
	default:
		sandbox.Raisef(l, "wrong number of arguments to 'insert'")
	}
	return 0
}

func (r *Runtime) remove(l *glua.LState) int {
	t := r.Writable(l, sandbox.CheckTable(l, 1))
	size := value.Length(t)
	at := int(sandbox.OptInt(l, 2, int64(size)))
	if at < 1 || at > size {
		return 0
	}
	l.Push(t.RawGet(glua.LNumber(at)))
	if size < value.ArrayMax {
		r.Guard.Step(l, (size-at)/16)
	}
	for i := at; i < size; i++ {
		if i%64 == 0 {
			r.Guard.Step(l, 8)
		}
		t.RawSet(glua.LNumber(i), t.RawGet(glua.LNumber(i+1)))
	}
	t.RawSet(glua.LNumber(size), glua.LNil)
	return 1
}

func (r *Runtime) maxn(l *glua.LState) int {
	t := r.Original(sandbox.CheckTable(l, 1))
	highest := glua.LNumber(0)
	seen := 0
	t.ForEach(func(k, _ glua.LValue) {
		if seen++; seen%64 == 0 {
			r.Guard.Step(l, 64)
		}
		if n, ok := k.(glua.LNumber); ok && n > highest {
			highest = n
		}
	})
	l.Push(highest)
	return 1
}

func (r *Runtime) tableConcat(l *glua.LState) int {
	t := r.Original(sandbox.CheckTable(l, 1))
	separator := ""
	if l.Get(2) != glua.LNil {
		separator = sandbox.CheckText(l, 2)
	}
	first := sandbox.OptInt(l, 3, 1)
	last := sandbox.OptInt(l, 4, 0)
	if l.Get(4) == glua.LNil {
		last = int64(value.Length(t))
	}
	b := r.Guard.NewBuilder(l)
	for i := first; i <= last; i++ {
		text, ok := value.Text(t.RawGet(glua.LNumber(i)))
		if !ok {
			sandbox.Raisef(l, "invalid value (%s) at index %d in table for 'concat'", sandbox.NameOf(t.RawGet(glua.LNumber(i))), i)
		}
		b.WriteString(text)
		if i < last {
			b.WriteString(separator)
		}
		r.Guard.Step(l, 1)
	}
	l.Push(b.Value())
	return 1
}

func (r *Runtime) foreachi(l *glua.LState) int {
	t := r.Original(sandbox.CheckTable(l, 1))
	f := sandbox.CheckFunction(l, 2)
	size := value.Length(t)
	for i := 1; i <= size; i++ {
		if found := r.visit(l, f, value.Number(int64(i)), t.RawGet(glua.LNumber(i))); found {
			return 1
		}
	}
	return 0
}

func (r *Runtime) foreach(l *glua.LState) int {
	t := r.Original(sandbox.CheckTable(l, 1))
	f := sandbox.CheckFunction(l, 2)
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		if t == r.Globals && compiler.Hidden(k) {
			continue
		}
		if found := r.visit(l, f, k, v); found {
			return 1
		}
	}
	return 0
}

// visit calls f with k and v. If f returns a value other than nil, which ends the iteration, visit
// leaves it on the stack and returns true.
func (r *Runtime) visit(l *glua.LState, f *glua.LFunction, k, v glua.LValue) bool {
	r.Guard.Step(l, 1)
	l.Push(f)
	l.Push(k)
	l.Push(v)
	l.Call(2, 1)
	if l.Get(-1) != glua.LNil {
		return true
	}
	l.Pop(1)
	return false
}

// sort implements table.sort. It sorts a copy of the elements and stores the sorted copy back, so
// that an inconsistent order function, or one that changes the table, does no harm.
func (r *Runtime) sort(l *glua.LState) int {
	t := r.Writable(l, sandbox.CheckTable(l, 1))
	var order *glua.LFunction
	if l.Get(2) != glua.LNil {
		order = sandbox.CheckFunction(l, 2)
	}
	size := value.Length(t)
	values := make([]glua.LValue, size)
	for i := range values {
		values[i] = t.RawGet(glua.LNumber(i + 1))
	}
	slices.SortFunc(values, func(a, b glua.LValue) int {
		switch {
		case r.less(l, order, a, b):
			return -1
		case r.less(l, order, b, a):
			return 1
		}
		return 0
	})
	for i, v := range values {
		t.RawSet(glua.LNumber(i+1), v)
	}
	return 0
}

func (r *Runtime) less(l *glua.LState, order *glua.LFunction, a, b glua.LValue) bool {
	if order != nil {
		r.Guard.Step(l, 1)
		l.Push(order)
		l.Push(a)
		l.Push(b)
		l.Call(2, 1)
		result := glua.LVAsBool(l.Get(-1))
		l.Pop(1)
		return result
	}
	switch x := a.(type) {
	case glua.LNumber:
		if y, ok := b.(glua.LNumber); ok {
			r.Guard.Step(l, 1)
			return x < y
		}
	case glua.LString:
		if y, ok := b.(glua.LString); ok {
			r.Guard.Step(l, 1+min(len(x), len(y))/256)
			return x < y
		}
	}
	return r.compare(l, a, b)
}

// compare compares a and b by the metamethod __lt. It raises an error if they have none or are of
// different types.
func (r *Runtime) compare(l *glua.LState, a, b glua.LValue) bool {
	r.Guard.Step(l, 1)
	if sandbox.NameOf(a) != sandbox.NameOf(b) {
		sandbox.Throw(l, glua.LString("attempt to compare "+sandbox.NameOf(a)+" with "+sandbox.NameOf(b)))
	}
	if _, ok := a.(*glua.LTable); !ok || l.GetMetaField(a, "__lt") == glua.LNil {
		sandbox.Throw(l, glua.LString("attempt to compare two "+sandbox.NameOf(a)+" values"))
	}
	return l.LessThan(a, b)
}
