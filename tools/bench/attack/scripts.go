package attack

import (
	"context"
	"strings"
)

// scripts returns the attack by scripts that allocate memory until the server kills them.
func scripts() []Attack {
	return []Attack{{
		Name:      "script-memory",
		About:     "scripts that build strings of 16 MB until they are killed, 16 on one connection one after another, then 4 on each of 4",
		CellOnly:  true, // Redis does not limit such a script, which takes 16 GB
		maxMemory: [2]int{64, 64},
		run: func(ctx context.Context, s *scene) error {
			const script = "local t = {} for i = 1, COUNT do t[i] = string.rep('x', 16000000) end return #t"
			greedy := strings.Replace(script, "COUNT", "1000", 1)
			less := strings.Replace(script, "COUNT", "100", 1)
			runs := s.pick(6, 16)
			s.crowd(ctx, 1, func(ctx context.Context, _ int, c *client) { s.evals(ctx, c, runs, greedy, less) })
			s.crowd(ctx, 4, func(ctx context.Context, _ int, c *client) { s.evals(ctx, c, s.pick(1, 4), less, greedy) })
			return nil
		},
	}}
}

// evals runs each script n times. The server has to kill them. A script that succeeds has exceeded
// every memory limit, and is noted.
func (s *scene) evals(ctx context.Context, c *client, n int, texts ...string) {
	for range n {
		for _, text := range texts {
			r, err := c.do("EVAL", text, "0")
			if err == nil {
				s.count(&r)
			}
			if err == nil && !r.refused() {
				s.note("a script of 1.6 GB ended well")
			}
			s.judge(ctx, &r, err)
			if err != nil {
				return
			}
		}
	}
}
