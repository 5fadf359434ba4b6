package admin_test

import (
	"bufio"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// infoFields parses INFO the way clients do: sections, and lines of a name and a value.
func infoFields(t *testing.T, text string) (sections []string, fields map[string]string) {
	t.Helper()
	fields = make(map[string]string)
	for _, line := range strings.Split(strings.TrimRight(text, "\r\n"), "\r\n") {
		switch {
		case line == "":
		case strings.HasPrefix(line, "# "):
			sections = append(sections, line[2:])
		default:
			name, v, ok := strings.Cut(line, ":")
			require.True(t, ok, "%q", line)
			require.NotContains(t, fields, name)
			fields[name] = v
		}
	}
	return sections, fields
}

// bulkText returns the content of a bulk or verbatim reply.
func bulkText(t *testing.T, reply string) string {
	t.Helper()
	_, text, ok := strings.Cut(reply, "\r\n")
	require.True(t, ok)
	if reply[0] == '=' {
		require.True(t, strings.HasPrefix(text, "txt:"))
		text = text[4:]
	}
	return strings.TrimSuffix(text, "\r\n")
}

// TestInfoFields: the fields that clients, exporters and health checks parse exist in the
// expected form.
func TestInfoFields(t *testing.T) {
	const number = `^-?\d+$`
	want := map[string]string{
		"redis_version": `^7\.2\.\d+$`, "redis_mode": "^standalone$", "os": ".+", "tcp_port": number, "run_id": "^[0-9a-f]{40}$", "process_id": number,
		"uptime_in_seconds": number, "server_name": "^cellserver$", "role": "^master$", "connected_slaves": "^0$", "master_replid": "^[0-9a-f]{40}$",
		"loading": "^0$", "rdb_bgsave_in_progress": "^0$", "aof_rewrite_in_progress": "^0$", "connected_clients": "^1$", "blocked_clients": "^0$",
		"maxclients": "^10000$", "used_memory": number, "maxmemory": "^0$", "maxmemory_policy": "^noeviction$", "total_commands_processed": number,
		"total_connections_received": "^1$", "instantaneous_ops_per_sec": number, "expired_keys": number, "evicted_keys": number,
		"keyspace_hits": number, "keyspace_misses": number, "rejected_connections": number, "cluster_enabled": "^0$",
		"module":              `^name=redis-cell,ver=1,api=1,filters=0,usedby=\[\],using=\[\],options=\[\]$`,
		"cmdstat_cl.throttle": `^calls=2,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=0,failed_calls=0$`,
		"cmdstat_get":         `^calls=1,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=1,failed_calls=0$`,
		"db0":                 `^keys=1,expires=1,avg_ttl=\d+$`, "db3": `^keys=1,expires=1,avg_ttl=\d+$`,
		"cl.throttle": "^allowed=2,denied=0,errors=0$",
	}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		c.Send("CL.THROTTLE k 1 1 60\r\nSELECT 3\r\nCL.THROTTLE k 1 1 60\r\nGET\r\nGET k\r\n")
		for range 5 {
			c.Reply()
		}
		_, fields := infoFields(t, bulkText(t, c.Do("INFO", "everything")))
		for name, form := range want {
			require.Regexp(t, form, fields[name], name)
		}
		sections, fields := infoFields(t, bulkText(t, c.Do("INFO")))
		require.Equal(t, []string{"Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "CPU", "Modules", "Errorstats", "Cluster", "Keyspace", "Ratelimit"}, sections)
		require.NotContains(t, fields, "cmdstat_get")
		for args, want := range map[string][]string{
			"server": {"Server"}, "SERVER": {"Server"}, "keyspace server": {"Server", "Keyspace"}, "nosuch": nil, "commandstats": {"Commandstats"},
			"default": sections, "replication": {"Replication"}, "Ratelimit": {"Ratelimit"},
		} {
			got, _ := infoFields(t, bulkText(t, c.Do(append([]string{"INFO"}, strings.Fields(args)...)...)))
			require.Equal(t, want, got, args)
		}
		require.Contains(t, c.Do("HELLO", "3"), "%7")
		require.True(t, strings.HasPrefix(c.Do("INFO", "server"), "="))
	})
}

// elements splits an aggregate into the bytes of its elements.
func elements(t *testing.T, reply string) []string {
	t.Helper()
	r := bufio.NewReader(strings.NewReader(reply))
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	n, err := strconv.Atoi(line[1 : len(line)-2])
	require.NoError(t, err)
	if line[0] == '%' {
		n *= 2
	}
	all := make([]string, n)
	for i := range all {
		all[i], err = inproc.ReadReply(r)
		require.NoError(t, err)
	}
	require.Zero(t, r.Buffered())
	return all
}

// TestCommandEntries: COMMAND has ten elements for each command, of the types that clients
// expect, and for redis-cell's command the entry that the module shows.
func TestCommandEntries(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		for _, proto := range []string{"2", "3"} {
			c := s.Dial()
			c.Do("HELLO", proto)
			set := map[string]string{"2": "*", "3": "~"}[proto]
			var check func(entry string)
			check = func(entry string) {
				e := elements(t, entry)
				require.Len(t, e, 10)
				require.Regexp(t, `^\$\d+\r\n[a-z._|-]+\r\n$`, e[0])
				for _, i := range []int{1, 3, 4, 5} {
					require.Equal(t, byte(':'), e[i][0], "%q", e[0])
				}
				for _, i := range []int{2, 6} {
					require.Equal(t, set, e[i][:1], "%q", e[0])
					for _, flag := range elements(t, e[i]) {
						require.Equal(t, byte('+'), flag[0])
					}
				}
				require.Equal(t, set+set, e[7][:1]+e[8][:1], "%q", e[0])
				require.Contains(t, []string{"*", set}, e[9][:1], "%q: Redis has a set where there is none", e[0])
				for _, sub := range elements(t, e[9]) {
					check(sub)
				}
			}
			all := elements(t, c.Do("COMMAND"))
			for _, entry := range all {
				check(entry)
			}
			require.Equal(t, ":"+strconv.Itoa(len(all))+"\r\n", c.Do("COMMAND", "COUNT"))
			require.Len(t, elements(t, c.Do("COMMAND", "LIST")), len(all))
			require.Len(t, elements(t, c.Do("COMMAND", "INFO")), len(all))

			two := elements(t, c.Do("COMMAND", "INFO", "CL.THROTTLE", "nosuch", "client|list"))
			require.Contains(t, []string{"$-1\r\n", "_\r\n"}, two[1])
			check(two[2])
			cell := elements(t, two[0])
			require.Equal(t, []string{inproc.Bulk("cl.throttle"), ":-1\r\n"}, cell[:2])
			require.Equal(t, []string{"+write\r\n", "+module\r\n"}, elements(t, cell[2]))
			require.Equal(t, []string{":1\r\n", ":1\r\n", ":1\r\n"}, cell[3:6])
			require.Empty(t, elements(t, cell[6]))
			require.Empty(t, elements(t, cell[7]))
			require.Len(t, elements(t, cell[8]), 1)

			docs := elements(t, c.Do("COMMAND", "DOCS", "cl.throttle", "nosuch", "set"))
			require.Equal(t, inproc.Bulk("cl.throttle"), docs[0])
			require.Contains(t, docs[1], inproc.Bulk("group")+inproc.Bulk("module"))
			require.Contains(t, docs[1], inproc.Bulk("module")+inproc.Bulk("redis-cell"))
			modules := elements(t, elements(t, c.Do("MODULE", "LIST"))[0])
			require.Equal(t, []string{inproc.Bulk("name"), inproc.Bulk("redis-cell"), inproc.Bulk("ver"), ":1\r\n"}, modules[:4])
			require.NoError(t, c.Close())
		}
	})
}
