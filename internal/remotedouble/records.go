package remotedouble

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/remote/records"
	"github.com/cellserver/cellserver/remote/servers"
)

const (
	head = records.KeyPrefix + "head"
	log  = records.KeyPrefix + "log"
)

// Records is the part of an engine that packages records and servers use, in memory: it implements their scripts in Go.
// The zero Records is not valid: see [NewRecords]. Only one goroutine may use it, unless it is that of a [Double].
type Records struct {
	Strings map[string]string
	Hashes  map[string]map[string]string
	Now     int64            // time of the engine in Unix nanoseconds
	ends    map[string]int64 // the time in Unix nanoseconds at which each string expires
	// Done has the values of each change that was written since the start, one after the other.
	Done [][]string
	// Channel has a message for each change that was written. Copies have the same Channel.
	Channel *Channel
	// Replicas are the replicas of the engine. Copies have the same Replicas.
	Replicas *Replicas
}

// NewRecords returns an engine without records, at an instant of 2023.
func NewRecords() *Records {
	return &Records{Strings: map[string]string{}, Hashes: map[string]map[string]string{}, Now: 1_700_000_000_123_456_000, ends: map[string]int64{}, Channel: &Channel{}, Replicas: &Replicas{}}
}

// Clone returns a copy of the records, with the same Channel and Replicas.
func (m *Records) Clone() *Records {
	c := &Records{Strings: maps.Clone(m.Strings), Hashes: map[string]map[string]string{}, Now: m.Now, Done: slices.Clone(m.Done), ends: maps.Clone(m.ends), Channel: m.Channel, Replicas: m.Replicas}
	for key, h := range m.Hashes {
		c.Hashes[key] = maps.Clone(h)
	}
	return c
}

// All returns all records by their keys.
func (m *Records) All() map[string]string {
	all := map[string]string{}
	for key, h := range m.Hashes {
		if key != log && key != servers.Key {
			maps.Copy(all, h)
		}
	}
	return all
}

func (m *Records) set(key, field, value string) {
	if m.Hashes[key] == nil {
		m.Hashes[key] = map[string]string{}
	}
	m.Hashes[key][field] = value
}

// Run returns the reply of a script of package records or servers.
func (m *Records) Run(script string, keys, args []string) any {
	switch servers.ScriptName(script) {
	case "beat":
		return m.beat(args)
	case "publish":
		live, _ := strconv.ParseInt(args[1], 10, 64)
		m.Strings[keys[0]] = strconv.FormatInt(m.Now/1e6, 10) + " " + args[0]
		m.ends[keys[0]] = m.Now + live*1e6
		return "ok"
	case "summaries":
		all := make([]any, 1+len(keys))
		all[0] = strconv.FormatInt(m.Now/1e6, 10)
		for i, key := range keys {
			if all[i+1] = ""; m.Now < m.ends[key] {
				most, _ := strconv.Atoi(args[0])
				all[i+1] = m.Strings[key][:min(len(m.Strings[key]), most+1)]
			}
		}
		return all
	}
	switch records.ScriptName(script) {
	case "commit":
		return m.commit(keys, args)
	case "follow":
		return m.follow(args)
	case "scan":
		return m.scan(keys, args)
	case "ids":
		if len(keys) > 2 {
			m.Strings[keys[2]] = m.Strings[head]
		}
		reply := []any{m.Strings[head]}
		for _, number := range args {
			e := m.Hashes[log][number]
			reply = append(reply, e[:min(16, len(e))])
		}
		return reply
	}
	panic("unknown script")
}

func (m *Records) commit(keys, args []string) any {
	if m.Strings[head] != args[0] {
		return m.Strings[head]
	}
	text, values := args[3], []string(nil)
	for i, key := range keys[2:] {
		pairs := split(args[6+i])
		if args[4] == "1" {
			text += args[6+i]
		}
		for j := 0; j < len(pairs); j += 2 {
			if pairs[j+1] == "" {
				delete(m.Hashes[key], pairs[j])
				continue
			}
			m.set(key, pairs[j], pairs[j+1])
			values = append(values, pairs[j+1])
		}
	}
	m.set(log, args[2], text)
	if args[5] != "" {
		delete(m.Hashes[log], args[5])
	}
	m.Strings[head] = args[1]
	m.Done = append(m.Done, values)
	m.Channel.Tell()
	return args[1]
}

// split returns the strings of text: each has its length, a colon and its bytes.
func split(text string) (all []string) {
	for text != "" {
		length, rest, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(length)
		if err != nil {
			panic(err)
		}
		all, text = append(all, rest[:n]), rest[n:]
	}
	return all
}

func (m *Records) follow(args []string) any {
	now := m.Now / 1000
	reply := []any{m.Strings[head], strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10), "ok"}
	again := append(slices.Clone(reply[:3]), "reload")
	if m.Strings[head] == args[0] || args[3] == "0" {
		return reply
	}
	number, _, _ := strings.Cut(m.Strings[head], " ")
	last, _ := strconv.Atoi(number)
	at, _ := strconv.Atoi(args[1])
	most, _ := strconv.Atoi(args[3])
	mostBytes, _ := strconv.Atoi(args[4])
	if at >= last {
		return again
	}
	previous := args[2]
	for size := 0; at < last && len(reply)-4 < most && size < mostBytes; {
		at++
		e, there := m.Hashes[log][strconv.Itoa(at)]
		if !there || len(e) < 32 || e[16:32] != previous {
			return again
		}
		previous, size = e[:16], size+len(e)
		reply = append(reply, e)
	}
	return reply
}

// scan reads whole hashes, as the in-process server does.
func (m *Records) scan(keys, args []string) any {
	at, _ := strconv.Atoi(args[0])
	most, _ := strconv.Atoi(args[2])
	reply := []any{m.Strings[head], "", "0"}
	for ; at < len(keys)-1 && len(reply)-3 < 2*most; at++ {
		for _, field := range slices.Sorted(maps.Keys(m.Hashes[keys[at+1]])) {
			reply = append(reply, field, m.Hashes[keys[at+1]][field])
		}
	}
	reply[1] = strconv.Itoa(at)
	return reply
}

// beat implements the script beat of package servers.
func (m *Records) beat(args []string) any {
	id, text, now := args[0], args[1], m.Now/1e6
	live, _ := strconv.ParseInt(args[2], 10, 64)
	most, _ := strconv.Atoi(args[3])
	longest, _ := strconv.Atoi(args[4])
	at, hash := strconv.FormatInt(now, 10), m.Hashes[servers.Key]
	if len(hash) > 2*most {
		return []any{at, "full"}
	}
	reply := []any{at, "ok"}
	for _, field := range slices.Sorted(maps.Keys(hash)) {
		value := hash[field]
		switch ends := endOf(value); {
		case field == id:
		case ends > now && ends <= now+10*live && len(field)+len(value) <= longest:
			reply = append(reply, field, value)
		default:
			delete(hash, field)
		}
	}
	switch {
	case text == "":
		delete(hash, id)
	case (len(reply)-2)/2 >= most:
		return []any{at, "full"}
	default:
		value := at + " " + strconv.FormatInt(now+live, 10) + " " + text
		m.set(servers.Key, id, value)
		reply = append(reply, id, value)
	}
	return reply
}

// endOf returns the time of the end in the value of a server, or 0.
func endOf(value string) int64 {
	parts := strings.SplitN(value, " ", 3)
	if len(parts) < 3 || !digits(parts[0]) || !digits(parts[1]) {
		return 0
	}
	ends, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return 0
	}
	return ends
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
