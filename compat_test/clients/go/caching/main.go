// Command caching tests the client-side cache of rueidis (DoCache). The section "Caching" in the
// README of the clients describes what it reports.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/cellserver/cellserver/compat_test/clients/go/checks"
)

func main() {
	reader, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{checks.Addr()}})
	if err != nil {
		checks.Fail(err)
	}
	writer, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{checks.Addr()}, DisableCache: true})
	if err != nil {
		checks.Fail(err)
	}
	fmt.Println("info library rueidis")
	ctx := context.Background()
	set := func(key, value string) error {
		return writer.Do(ctx, writer.B().Set().Key(key).Value(value).Build()).Error()
	}
	get := func(key string) (string, error) {
		value, err := reader.DoCache(ctx, reader.B().Get().Key(key).Cache(), time.Hour).ToString()
		if rueidis.IsRedisNil(err) {
			return "", nil
		}
		return value, err
	}
	over, quiet := make(chan struct{}), make(chan struct{})
	go func() { // other keys are written at the same time
		defer close(quiet)
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
				_ = set(fmt.Sprintf("noise:%d", i%4), strconv.Itoa(i))
			}
		}
	}()
	stale, hits, err := rounds(set, get)
	close(over)
	<-quiet
	switch {
	case err != nil:
		fmt.Println("FAIL never-stale:", err)
		os.Exit(1)
	case stale > 0 || hits == 0:
		fmt.Printf("FAIL never-stale: %d stale, %d kept\n", stale, hits)
		os.Exit(1)
	}
	fmt.Println("ok never-stale")
}

// patience is the maximum time that an invalidation may take to reach the client.
const patience = 5 * time.Second

// rounds makes the client cache a value and changes the value by another client, CELL_ROUNDS times.
// stale is the number of rounds in which the client still returned the old value after patience,
// and hits the number of rounds in which it returned a value from its cache. rounds ends after
// three stale ones.
func rounds(set func(key, value string) error, get func(key string) (string, error)) (stale, hits int, err error) {
	n, err := strconv.Atoi(os.Getenv("CELL_ROUNDS"))
	if err != nil {
		return 0, 0, err
	}
	for i := 0; i < n && stale < 3; i++ {
		key, value := fmt.Sprintf("cached:%d", i%8), strconv.Itoa(i)
		before, err := get(key)
		if err != nil {
			return 0, 0, err
		}
		if again, _ := get(key); again == before {
			hits++
		}
		if _, err := get(fmt.Sprintf("noise:%d", i%4)); err != nil {
			return 0, 0, err
		}
		if err := set(key, value); err != nil {
			return 0, 0, err
		}
		for end := time.Now().Add(patience); ; {
			got, err := get(key)
			if err != nil {
				return 0, 0, err
			}
			if got == value {
				break
			}
			if time.Now().After(end) {
				stale++
				break
			}
		}
	}
	return stale, hits, nil
}
