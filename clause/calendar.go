package clause

import (
	"bytes"
	"maps"
	"strings"
	"sync/atomic"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
)

// excludesCalendar reports whether the window is one of the calendar, and the other options do not
// allow such a window.
func (a *windowArgs) excludesCalendar() bool {
	c := &a.call
	return c.Calendar.Unit != calendar.None &&
		(c.Mode != slidingwindow.None && c.Mode != slidingwindow.Fixed || c.Even || a.anchor != anchorEpoch)
}

// zone parses b, the argument of the option ZONE, which is word.
func (a *windowArgs) zone(word, b []byte) resp.Error {
	if err := arg.Once(word, &a.zoned); err != "" {
		return err
	}
	z, ok := zoneOf(b)
	if !ok && a.anyZone && calendar.ValidName(b) {
		z, ok = calendar.Known(string(b)), true
	}
	if !ok {
		return resp.Argument(resp.ErrNoZone, "ZONE", b, "a zone of tzdata "+calendar.Release()+" such as Europe/Berlin")
	}
	a.call.Calendar.Zone = z
	return ""
}

// start parses b, the argument of the option FROM, which is word.
func (a *windowArgs) start(word, b []byte) resp.Error {
	if err := arg.Once(word, &a.from); err != "" {
		return err
	}
	unit := a.call.Calendar.Unit
	from, ok := unit.ParseFrom(b)
	if !ok {
		return resp.Argument(resp.ErrNoStart, "FROM", b, unit.FromForm())
	}
	a.call.Calendar.From = from
	return ""
}

// zones has each zone that was named in a clause, by its name in upper case, so that its rules are read
// once. So clauses with the same zone have the same *[calendar.Zone]. It has at most the zones of tzdata.
// The map is not changed; a new zone makes a new one.
var zones atomic.Pointer[map[string]*calendar.Zone]

// zoneOf returns the zone with the given name, in upper or lower case. It allocates nothing if the zone
// was named before.
func zoneOf(name []byte) (z *calendar.Zone, ok bool) {
	if len(name) > calendar.MaxName {
		return nil, false
	}
	var room [calendar.MaxName]byte
	upper := room[:len(name)]
	for i, c := range name {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper[i] = c
	}
	for {
		known := zones.Load()
		if known != nil {
			if z, ok = (*known)[string(upper)]; ok {
				return z, true
			}
		}
		if z == nil {
			if z, ok = calendar.Load(string(upper)); !ok {
				return nil, false
			}
		}
		next := map[string]*calendar.Zone{string(upper): z}
		if known != nil {
			maps.Copy(next, *known)
		}
		if zones.CompareAndSwap(known, &next) {
			return z, true
		}
	}
}

// Text returns words, a clause that [Room.Parse] has accepted, as text: in upper case with single
// spaces. The name of a zone is as in tzdata, or as it is in words if tzdata does not have it.
func Text(words [][]byte) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if i > 0 && arg.IsWord(words[i-1], "ZONE") {
			b.WriteString(zoneName(w))
		} else {
			b.Write(bytes.ToUpper(w))
		}
	}
	return b.String()
}

// zoneName returns the name of a zone as tzdata has it, or name if tzdata does not have the zone.
func zoneName(name []byte) string {
	switch z, ok := zoneOf(name); {
	case !ok:
		return string(name)
	case z == nil:
		return "UTC"
	default:
		return z.Name()
	}
}
