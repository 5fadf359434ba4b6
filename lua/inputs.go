package lua

import (
	"math"
	"unsafe"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

// inputs are KEYS and ARGV of a script.
type inputs struct {
	// tables are the globals KEYS and ARGV, or nil if a script may have changed them.
	tables [2]*glua.LTable
	// slots are the strings to which the tables' values point.
	slots [2][]glua.LString
	// span is the address range of the slots' bytes, computed when it is first needed; its end is 0
	// before.
	span struct{ from, to uintptr }
}

// forget makes the next script get new tables.
func (in *inputs) forget() { in.tables = [2]*glua.LTable{} }

// set fills the globals of s.
func (in *inputs) set(s *sandbox.State, keys, args [][]byte) {
	in.fill(s, 0, "KEYS", keys)
	in.fill(s, 1, "ARGV", args)
	in.span.to = 0
}

// fill fills the table of a global. Its strings are the caller's bytes: no value outlives the run,
// and the caller keeps the bytes until then. A table that is reused needs no new values, since its
// values point to the slots.
func (in *inputs) fill(s *sandbox.State, which int, name string, values [][]byte) {
	slots, table := in.slots[which], in.tables[which]
	if table == nil {
		table = s.L.CreateTable(len(values), 0)
		s.Globals.RawSetString(name, table)
		in.tables[which], slots = table, nil
	}
	if len(values) > cap(slots) {
		slots = make([]glua.LString, 0, max(len(values), 8))
	}
	known := len(slots)
	slots = slots[:len(values)]
	for i, b := range values {
		slots[i] = glua.LString(value.View(b))
		if i >= known {
			table.RawSetInt(i+1, value.StringAt(&slots[i]))
		}
	}
	for i := known; i > len(values); i-- {
		table.RawSetInt(i, glua.LNil)
	}
	in.slots[which] = slots
}

// borrowed reports whether s lies in one of KEYS and ARGV. These are close together, so a string
// outside of their range need not be compared with each of them; there may be tens of thousands.
func (in *inputs) borrowed(s string) bool {
	at, _ := placeOf(s)
	if in.span.to == 0 {
		in.span.from, in.span.to = in.slotSpan()
	}
	if at < in.span.from || at >= in.span.to {
		return false
	}
	for _, slots := range in.slots {
		for _, slot := range slots {
			if from, to := placeOf(string(slot)); from <= at && at < to {
				return true
			}
		}
	}
	return false
}

// slotSpan returns the address range from the first byte of KEYS and ARGV to the end of the last.
func (in *inputs) slotSpan() (from, to uintptr) {
	from, to = math.MaxUint, 1
	for _, slots := range in.slots {
		for _, slot := range slots {
			if len(slot) > 0 {
				begin, end := placeOf(string(slot))
				from, to = min(from, begin), max(to, end)
			}
		}
	}
	return from, to
}

// placeOf returns the address range of s.
func placeOf(s string) (from, to uintptr) {
	from = uintptr(unsafe.Pointer(unsafe.StringData(s)))
	return from, from + uintptr(len(s))
}
