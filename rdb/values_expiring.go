package rdb

// earlyHash reads a hash as Redis wrote it before the release of 7.4: the expiry of the field (0
// for none), the field, the value.
func (v *values) earlyHash() error {
	return v.each(func() error { return v.expiringPair(1) })
}

// expiringHash reads a hash of Redis 7.4: the earliest expiry of a field (u64), then fields as in
// earlyHash, with expiries minus the earliest one, plus 1.
func (v *values) expiringHash() error {
	first, err := v.number(8)
	if err != nil {
		return err
	}
	if first > latest+1 { // one more means none, and then no field may expire
		return corrupt("a hash whose fields expire at %d", first)
	}
	return v.each(func() error { return v.expiringPair(first) })
}

// expiringPair reads the expiry of a field, 0 for none and otherwise counted from first-1, the
// field and the value.
func (v *values) expiringPair(first uint64) error {
	expire, err := v.count()
	if err != nil {
		return err
	}
	if expire > latest || expire+first > latest+1 {
		return corrupt("a field that expires at %d after %d", expire, first)
	}
	if expire > 0 {
		expire += first - 1
	}
	return v.pair(int64(expire))
}

// expiringListpack reads a packed hash of Redis 7.4: the earliest expiry of a field (u64), which
// its entries have too, then a listpack of fields, values and expiries (0 for none).
func (v *values) expiringListpack() error {
	if _, err := v.number(8); err != nil {
		return err
	}
	return v.packedForm(newListpack, withExpiry)
}

// valkeyHash reads a hash of Valkey 9: the field, the value, the expiry (i64, -1 for none).
func (v *values) valkeyHash() error {
	return v.each(func() error {
		name, err := v.next()
		if err != nil {
			return err
		}
		value, err := v.next()
		if err != nil {
			return err
		}
		at, err := v.number(8)
		if err != nil {
			return err
		}
		return v.add(Element{Name: name, Value: value, Expire: instant(at)})
	})
}

// instant converts an i64 to an instant of [Key] and [Element]: -1 means never, and an instant
// before 1970 becomes 1, which has passed as well.
func instant(bits uint64) int64 {
	at := int64(bits)
	if at == -1 {
		return 0
	}
	return max(at, 1)
}
