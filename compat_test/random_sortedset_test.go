package compat_test

import (
	"fmt"
	"math"
	"strconv"
)

// score is a score as a client may write it, right or wrong. It is not -0, which only
// large sorted sets of Redis keep.
func (r roulette) score() string {
	text := r.anyScore()
	if f, err := strconv.ParseFloat(text, 64); err == nil && f == 0 {
		return "0"
	}
	return text
}

func (r roulette) anyScore() string {
	switch r.IntN(6) {
	case 0, 1:
		return fmt.Sprint(r.IntN(20) - 10)
	case 2:
		return strconv.FormatFloat(r.NormFloat64()*float64(int64(1)<<r.IntN(60)), 'g', r.IntN(19)-1, 64)
	case 3:
		if f := math.Float64frombits(r.Uint64()); f == f {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
		return strconv.FormatInt(int64(r.Uint64()>>r.IntN(64)), 10)
	case 4:
		return r.float()
	}
	return r.one("0", "1.5", "-0", "inf", "-inf", "+inf", "1e308", "-1e308", "1e-320", "0x10", "0x1.8", "0X.8p1", "0x1p-1080", "0x0p9",
		"1700000000123", "999999999999999", "1000000000000000", "100000000000000000", "123456789012345678")
}

// scoreBound is an end of a range of scores.
func (r roulette) scoreBound() string {
	return r.one("", "", "(") + r.one("-inf", "+inf", r.score(), r.score(), r.score(), " 1", "\t-2", "1e999", "1e-999", "1\x00x", "1_0", "((1", "")
}

func (r roulette) lexBound() string {
	return r.one("-", "+", "["+r.member(), "("+r.member(), "["+r.member(), "("+r.member(), "[", "(", "", "-x", "+x", r.member())
}

func (r roulette) member() string {
	if r.IntN(30) == 0 {
		return r.one("", "\x00\xff", fmt.Sprintf("%0300d", r.IntN(9)))
	}
	return fmt.Sprintf("m%d", r.IntN(90))
}

func (r roulette) rank() string {
	if r.IntN(8) == 0 {
		return r.number()
	}
	return fmt.Sprint(r.IntN(30) - 15)
}

func (r roulette) members(n int) (all []string) {
	for range 1 + r.IntN(n) {
		all = append(all, r.member())
	}
	return all
}

// some is each of the words with one chance in three.
func (r roulette) some(words ...string) (all []string) {
	for _, w := range words {
		if r.IntN(3) == 0 {
			all = append(all, r.word(w))
		}
	}
	return all
}

func (r roulette) zadd(key string) []string {
	command := []string{"ZADD", key}
	if r.IntN(2) == 0 {
		command = append(command, r.some("NX", "XX", "GT", "LT", "CH", "INCR")...)
	}
	n := 1
	if r.IntN(4) == 0 {
		n = r.IntN(60)
	}
	for range n {
		score := fmt.Sprint(r.IntN(1000))
		if n < 4 {
			score = r.score()
		}
		command = append(command, score, r.member())
	}
	if r.IntN(20) == 0 {
		command = append(command, r.member())
	}
	return command
}

// limit is LIMIT, mostly as it should be.
func (r roulette) limit() []string {
	switch r.IntN(8) {
	case 0, 1, 2:
		return []string{r.word("LIMIT"), fmt.Sprint(r.IntN(10) - 2), fmt.Sprint(r.IntN(20) - 4)}
	case 3:
		return []string{"LIMIT", r.rank(), r.rank()}
	case 4:
		return []string{"LIMIT", "1"}
	}
	return nil
}

func (r roulette) zrange(key string) []string {
	switch r.IntN(7) {
	case 0:
		return append([]string{r.one("ZRANGE", "ZREVRANGE"), key, r.rank(), r.rank()}, r.some("WITHSCORES")...)
	case 1:
		return append([]string{"ZRANGE", key, r.rank(), r.rank(), "REV"}, r.some("WITHSCORES")...)
	case 2, 3:
		command := append([]string{r.one("ZRANGEBYSCORE", "ZREVRANGEBYSCORE"), key, r.scoreBound(), r.scoreBound()}, r.limit()...)
		return append(command, r.some("WITHSCORES")...)
	case 4:
		command := append([]string{"ZRANGE", key, r.scoreBound(), r.scoreBound(), r.word("BYSCORE")}, r.some("REV")...)
		return append(append(command, r.limit()...), r.some("WITHSCORES")...)
	case 5:
		command := append([]string{r.one("ZRANGE", "ZREVRANGE", "ZREVRANGEBYSCORE"), key, r.rank(), r.rank()}, r.limit()...)
		return append(command, r.some("BYSCORE", "BYLEX", "REV", "WITHSCORES", "BYLEX", "bogus")...)
	}
	// Only where all scores are equal is the answer defined.
	command := append([]string{"ZRANGE", r.one("lex", "lex", "nokey", "collection"), r.lexBound(), r.lexBound(), r.word("BYLEX")}, r.limit()...)
	return append(command, r.some("REV")...)
}

// sortedSetCommand is a call of one of the commands of sorted sets.
func (r roulette) sortedSetCommand() []string {
	key := r.one("a", "b", "b", "collection", "nokey")
	switch r.IntN(24) {
	case 0, 1, 2, 3, 4, 5:
		return r.zadd(r.one("a", "b", "c"))
	case 6, 7, 8, 9, 10:
		return r.zrange(key)
	case 11:
		return append([]string{"ZREM", key}, r.members(4)...)
	case 12:
		return []string{"ZSCORE", key, r.member()}
	case 13:
		return append([]string{"ZMSCORE", key}, r.members(5)...)
	case 14:
		return []string{"ZCARD", key}
	case 15, 16:
		return []string{"ZCOUNT", key, r.scoreBound(), r.scoreBound()}
	case 17:
		return []string{"ZINCRBY", r.one("a", "b", "collection"), r.score(), r.member()}
	case 18:
		return []string{"ZREMRANGEBYSCORE", key, r.scoreBound(), r.one("5", r.scoreBound())}
	case 19:
		return []string{"ZREMRANGEBYRANK", key, r.rank(), r.one("3", r.rank())}
	case 20:
		return []string{r.one("ZRANK", "ZREVRANK"), key, r.member()}
	case 21:
		command := []string{r.one("ZPOPMIN", "ZPOPMAX"), key}
		if r.IntN(2) == 0 {
			command = append(command, r.one("0", "1", "2", "5", "-1", "x", "9223372036854775807"))
		}
		if r.IntN(10) == 0 {
			command = append(command, "1")
		}
		return command
	case 22:
		return []string{"ZADD", "lex", "0", r.member()}
	}
	return []string{r.one("EXISTS", "TYPE"), key}
}
