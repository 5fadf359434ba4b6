package rdb

// earlyHash reads a hash as Redis wrote it before the release of 7.4: for each field its expiry (0
// for none), the field and the value.
func (v *values) earlyHash() error {
	return v.each(func() error { return v.expiringPair(1) })
}

// expiringHash reads a hash of Redis 7.4: the earliest expiry of a field (u64), then fields as in
// earlyHash, except that the expiry of a field is stored as its distance to the earliest expiry
// plus 1.
func (v *values) expiringHash() error {
	first, err := v.number(8)
	if err != nil {
		return err
	}
	if first > latest+1 { // latest+1 means that no field has an expiry
		return corrupt("a hash whose fields expire at %d", first)
	}
	return v.each(func() error { return v.expiringPair(first) })
}

// expiringPair reads the expiry of a field (0 for none, otherwise its distance to first-1), the
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

// expiringListpack reads a packed hash of Redis 7.4: the earliest expiry of a field (u64), which is
// not needed here, then a listpack of fields, values and expiries (0 for none).
func (v *values) expiringListpack() error {
	if _, err := v.number(8); err != nil {
		return err
	}
	return v.packedForm(newListpack, withExpiry)
}

// valkeyHash reads a hash of Valkey 9: for each field the field, the value and the expiry (i64, -1
// for none).
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

// instant converts an expiry in the RDB, an i64, to the form in [Key] and [Element]. -1 means never
// and becomes 0. An earlier expiry than 1 becomes 1, which has passed as well.
func instant(bits uint64) int64 {
	at := int64(bits)
	if at == -1 {
		return 0
	}
	return max(at, 1)
}
