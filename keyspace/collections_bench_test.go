package keyspace_test

import (
	"fmt"
	"testing"

	"github.com/cellserver/cellserver/collection"
)

// BenchmarkWriteHash sets one field of hashes of several sizes, with a journal.
func BenchmarkWriteHash(b *testing.B) {
	for _, n := range []int{3, 30, 1000, 100_000} {
		b.Run(fmt.Sprint("fields=", n), func(b *testing.B) {
			_, v, j, _ := journalled(b)
			j.blind = true
			fillHash(b, v, 0, "k", n)
			key, field, value := []byte("k"), []byte("field:000001"), []byte("another value of bytes")
			set := func(h *collection.Hash) error { _, err := h.Set(field, value); return err }
			b.ReportAllocs()
			for b.Loop() {
				if err := v.WriteHash(0, key, set); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWriteSortedSet moves one member of sets of several sizes, with a journal.
func BenchmarkWriteSortedSet(b *testing.B) {
	for _, n := range []int{3, 30, 1000, 100_000} {
		b.Run(fmt.Sprint("members=", n), func(b *testing.B) {
			_, v, j, _ := journalled(b)
			j.blind = true
			key, member, score := []byte("k"), []byte("member:000001"), 0.0
			if err := v.WriteSortedSet(0, key, func(z *collection.SortedSet) error {
				for i := range n {
					if _, err := z.Set(fmt.Appendf(nil, "member:%06d", i), float64(i)); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
			move := func(z *collection.SortedSet) error { score++; _, err := z.Set(member, score); return err }
			b.ReportAllocs()
			for b.Loop() {
				if err := v.WriteSortedSet(0, key, move); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
