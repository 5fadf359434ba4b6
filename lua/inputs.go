package lua

import (
	"math"
	"unsafe"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

// inputs has the tables KEYS and ARGV of a script, and reuses them for the next script if it can.
type inputs struct {
	// tables has the globals KEYS and ARGV. An element is nil if a script may have changed the
	// table, so that the next script needs a new one.
	tables [2]*glua.LTable
	// slots are the strings to which the values in tables point.
	slots [2][]glua.LString
	// span is the address range of the bytes of all slots. slotSpan computes it when borrowed needs
	// it first; until then span.to is 0.
	span struct{ from, to uintptr }
}

// forget drops the tables, so that the next script gets new ones.
func (in *inputs) forget() { in.tables = [2]*glua.LTable{} }

// set sets the globals KEYS and ARGV of s to keys and args. The script's strings share memory with
// them, so the caller must keep their bytes until the run ends.
func (in *inputs) set(s *sandbox.State, keys, args [][]byte) {
	in.fill(s, 0, "KEYS", keys)
	in.fill(s, 1, "ARGV", args)
	in.span.to = 0
}

// fill sets the global called name to a table of values. The table has the index which in in.tables
// and in.slots. The strings share the bytes of values: no string outlives the run, and the caller
// keeps the bytes until then. The values in a reused table stay as they are, since they point to
// slots.
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

// borrowed reports whether the bytes of s lie in an element of KEYS or ARGV. The elements are close
// together in memory, so a string outside of their span need not be compared with each of them; a
// call may have tens of thousands.
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

// slotSpan returns the address range from the first byte of all elements of KEYS and ARGV to the
// end of the last. The range is empty if all elements are.
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

// placeOf returns the address range of the bytes of s: they begin at from and end before to.
func placeOf(s string) (from, to uintptr) {
	from = uintptr(unsafe.Pointer(unsafe.StringData(s)))
	return from, from + uintptr(len(s))
}
