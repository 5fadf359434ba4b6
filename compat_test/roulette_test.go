package compat_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// roulette makes random commands.
type roulette struct{ *rand.Rand }

func (r roulette) one(of ...string) string { return of[r.IntN(len(of))] }

func (r roulette) key() string { return r.one("a", "b", "c", "d", "collection") }

func (r roulette) number() string {
	if r.IntN(3) > 0 {
		return fmt.Sprint(r.IntN(200) - 100)
	}
	return r.one("0", "1", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "9223372036854775800",
		"-9223372036854775800", "01", "+1", "-0", "", " 1", "1 ", "x", "1.5", "4611686018427387904", "-")
}

func (r roulette) float() string {
	switch r.IntN(4) {
	case 0:
		return fmt.Sprintf("%.*f", r.IntN(25), r.NormFloat64()*float64(int64(1)<<r.IntN(60)))
	case 1:
		return fmt.Sprintf("%.*e", r.IntN(25), r.NormFloat64()*float64(int64(1)<<r.IntN(60)))
	case 2:
		return r.number()
	}
	return r.one("0.1", "0.2", "-0.0", "1e400", "-1e4900", "1e4932", "1.18973149535723176502e+4932", "1.2e4932", "1e4933", "1e-4951", "3.7e-4951",
		"1e-4960", "1e99999999999", "-1e-99999999999", "0e99999999999", "inf", "-inf", "Infinity", "+INFINITY", "nan", "nan(1)", "0x10", "0X1.8p3",
		"0x1p16383", "0x1p16384", "0x.8", "0x", "0x1p", "1e", "1e+", ".5", "5.", ".", "..5", "1..5", "--1", "+-1", "1_000", "0b1", "0o7",
		"1e5.5", "\x001", "1\x00", "1e 5", "\t1", strings.Repeat("1", 5119), strings.Repeat("1", 5120),
		"0."+strings.Repeat("3", 3000), "36893488147419103233", "18446744073709551617", "0.5e-17", "1.5e-17", "0.000000000000000005")
}

func (r roulette) value() string {
	switch r.IntN(4) {
	case 0:
		return r.float()
	case 1:
		return strings.Repeat("v", r.IntN(100))
	}
	return r.number()
}

func (r roulette) word(w string) string {
	if r.IntN(4) == 0 {
		return strings.ToLower(w)
	}
	return w
}

// expiry is an option that sets one, where it makes no difference when it is asked
// for again.
func (r roulette) expiry() []string {
	switch r.IntN(8) {
	case 0:
		return []string{r.word("EX"), r.one("5000", "0", "-1", "x", "9223372036854775807", "9223372036854775", "100000")}
	case 1:
		return []string{r.word("PX"), r.one("5000000", "0", "-5", "9223372036854775807", "7000000")}
	case 2:
		return []string{r.word("EXAT"), r.one("4000000000", "1", "0", "-7", "9223372036854775807")}
	case 3:
		return []string{r.word("PXAT"), r.one("4000000000123", "1", "0", "9223372036854775807", "1.5")}
	case 4:
		return []string{r.word(r.one("EX", "PX"))}
	}
	return nil
}

func (r roulette) setOptions(words ...string) (options []string) {
	for range r.IntN(4) {
		if r.IntN(2) == 0 {
			options = append(options, r.expiry()...)
		} else {
			options = append(options, r.word(r.one(words...)))
		}
	}
	return options
}

// stringCommand is a call of one of the commands of plain strings.
func (r roulette) stringCommand() []string {
	k := r.key()
	switch r.IntN(26) {
	case 0, 1, 2:
		return append([]string{"SET", k, r.value()}, r.setOptions("NX", "XX", "GET", "KEEPTTL", "NX", "PERSIST", "bogus")...)
	case 3:
		return []string{"SETEX", k, r.one("5000", "0", "-1", "x", "9223372036854775807"), r.value()}
	case 4:
		return []string{"PSETEX", k, r.one("5000000", "0", "-1", "", "9223372036854775807"), r.value()}
	case 5:
		return []string{"SETNX", k, r.value()}
	case 6:
		return []string{"GETSET", k, r.value()}
	case 7:
		return []string{"GETDEL", k}
	case 8, 9:
		return append([]string{"GETEX", k}, r.setOptions("PERSIST", "PERSIST", "KEEPTTL", "NX")...)
	case 10:
		return []string{"MGET", k, r.key(), r.key()}
	case 11:
		return []string{r.one("MSET", "MSETNX"), k, r.value(), r.key(), r.value()}
	case 12:
		return []string{r.one("MSET", "MSETNX"), k, r.value(), r.key()}
	case 13:
		return []string{r.one("INCR", "DECR"), k}
	case 14, 15:
		return []string{r.one("INCRBY", "DECRBY"), k, r.number()}
	case 16, 17, 18:
		return []string{"INCRBYFLOAT", k, r.float()}
	case 19:
		return []string{"APPEND", k, r.one("", "1", "x", strings.Repeat("long", 30))}
	case 20:
		return []string{"STRLEN", k}
	case 21, 22:
		return []string{"GETRANGE", k, r.number(), r.number()}
	case 23:
		return []string{"SETRANGE", k, r.one("0", "1", "7", "300", "-1", "x", "9223372036854775807", "1048577000"), r.one("", "a", "bcd")}
	case 24:
		return []string{"PERSIST", k}
	}
	return []string{r.one("GET", "DEL"), k}
}

func (r roulette) field() string {
	return r.one("f", "g", "h", "", "number", "i"+fmt.Sprint(r.IntN(300)))
}

// hashCommand is a call of one of the commands of hashes.
func (r roulette) hashCommand() []string {
	k := r.one("a", "b", "string")
	f := r.field()
	switch r.IntN(20) {
	case 0, 1, 2, 3:
		command := []string{r.one("HSET", "HSET", "HMSET"), k}
		for range 1 + r.IntN(8) {
			command = append(command, r.field(), r.value())
		}
		if r.IntN(10) == 0 {
			command = append(command, f)
		}
		return command
	case 4:
		return []string{"HSETNX", k, f, r.value()}
	case 5, 6:
		return []string{"HGET", k, f}
	case 7:
		return []string{"HMGET", k, f, r.field(), f}
	case 8:
		return []string{"HDEL", k, f, r.field(), r.field()}
	case 9:
		return []string{"HEXISTS", k, f}
	case 10:
		return []string{"HLEN", k}
	case 11:
		return []string{"HSTRLEN", k, f}
	case 12, 13:
		return []string{"HINCRBY", k, f, r.number()}
	case 14, 15:
		return []string{"HINCRBYFLOAT", k, f, r.float()}
	case 16:
		return []string{r.one("EXPIRE", "EXPIRE", "PERSIST"), k, "5000"}[:2+r.IntN(2)]
	case 17:
		if r.IntN(20) == 0 {
			return []string{"DEL", k}
		}
		return []string{"TYPE", k}
	}
	return []string{r.one("HGETALL", "HKEYS", "HVALS"), k}
}
