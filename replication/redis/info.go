package redis

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/replication/protocol"
)

// Info returns the fields of INFO replication about the Redis that f follows, nil if f has never
// followed one. Any goroutine may call it.
func (f *Follower) Info() []protocol.Field {
	id, offset, settled := f.Current()
	figures := f.Figures()
	if id == "" && figures.Loaded+figures.Commands == 0 {
		return nil
	}
	return []protocol.Field{
		field("attached", flag(id != "")),
		field("replid", id),
		integer("offset", offset),
		field("settled", flag(settled)),
		integer("keys_loaded", figures.Loaded),
		integer("commands", figures.Commands),
		integer("keys_read", figures.Read),
		integer("keys_dirty", figures.Dirty),
		field("skipped", list(figures.Skipped)),
	}
}

// Info returns the field of INFO replication with the counts of values and commands that were not
// sent to replicas; nil if there are none. Any goroutine may call it.
func (r *Replicas) Info() []protocol.Field {
	if unsent := r.unsent.Counts(); len(unsent) > 0 {
		return []protocol.Field{field("unsent", list(unsent))}
	}
	return nil
}

func field(name, value string) protocol.Field {
	return protocol.Field{Name: "cell_attach_" + name, Value: value}
}

func integer(name string, n int64) protocol.Field { return field(name, strconv.FormatInt(n, 10)) }

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// list formats counts as one value, such as "stream=2,xadd=5", sorted by name. In a name it
// replaces a comma by a semicolon, and "=" by a colon.
func list(counts map[string]int64) string {
	clean := strings.NewReplacer(",", ";", "=", ":")
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, clean.Replace(name)+"="+strconv.FormatInt(counts[name], 10))
	}
	return strings.Join(parts, ",")
}
