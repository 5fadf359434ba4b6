package attack

import (
	"context"
	"strconv"
)

// long returns the attacks by commands with very many keys.
func long() []Attack {
	return []Attack{
		{
			Name:      "long-multi",
			About:     "4 clients call RL.MULTI of 16,000 clauses one after another",
			CellOnly:  true,
			maxMemory: [2]int{64, 256},
			run: func(ctx context.Context, s *scene) error {
				n := s.pick(4_000, 16_000)
				s.steadily(ctx, 4, func(i, _ int) [][]string { return [][]string{multi(i, n)} })
				return nil
			},
		},
		{
			Name:      "long-mset",
			About:     "4 clients call MSET of 30,000 keys, MGET and DEL of them one after another",
			maxMemory: [2]int{64, 256},
			run: func(ctx context.Context, s *scene) error {
				n := s.pick(5_000, 30_000)
				s.steadily(ctx, 4, func(i, _ int) [][]string {
					keys := names("long:"+strconv.Itoa(i)+":", n)
					set := []string{"MSET"}
					for _, key := range keys {
						set = append(set, key, "x")
					}
					return [][]string{set, append([]string{"MGET"}, keys...), append([]string{"DEL"}, keys...)}
				})
				return nil
			},
		},
	}
}

// steadily runs n clients for the span of the attack. Client i sends the commands that commands
// returns for i and for the number of its turn, and reads the replies.
func (s *scene) steadily(ctx context.Context, n int, commands func(i, turn int) [][]string) {
	steady, cancel := s.during(ctx)
	defer cancel()
	s.crowd(ctx, n, func(ctx context.Context, i int, c *client) {
		for turn := 0; steady.Err() == nil; turn++ {
			for _, words := range commands(i, turn) {
				if s.ask(ctx, c, words...) != nil {
					return
				}
			}
		}
	})
}

func names(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = prefix + strconv.Itoa(i)
	}
	return keys
}

// multi returns a call of RL.MULTI with n clauses on keys of client i.
func multi(i, n int) []string {
	words := append([]string{"RL.MULTI", strconv.Itoa(n)}, names("multi:"+strconv.Itoa(i)+":", n)...)
	for range n {
		words = append(words, "SW", "1000000", "60") // 16,000 clauses come near the maximum number of arguments
	}
	return words
}
