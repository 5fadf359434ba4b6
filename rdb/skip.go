package rdb

import "fmt"

// stream passes over a stream: its nodes (the first ID, a listpack), its length and IDs, and
// its groups. Versions 2 and 3 have more fields, and 4 has what producers have sent behind them.
func (v *values) stream(version int) error {
	if err := v.times(func() error { return v.twoTexts() }); err != nil {
		return err
	}
	fields, groupFields := 3, 2 // length and last ID; last ID
	if version >= 2 {
		fields, groupFields = fields+5, groupFields+1 // first and greatest deleted ID, entries added; entries read
	}
	if err := v.counts(fields); err != nil {
		return err
	}
	err := v.times(func() error { return v.group(version, groupFields) })
	if err != nil || version < 4 {
		return err
	}
	return v.producers()
}

// producers passes over what a stream knows of producers whose messages are added once: for how
// long and how many it keeps, each producer with its messages (the name that the producer gave it,
// the ID), and two counts.
func (v *values) producers() error {
	if err := v.counts(2); err != nil {
		return err
	}
	err := v.times(func() error {
		if err := v.skipText(); err != nil {
			return err
		}
		return v.times(func() error {
			if err := v.skipText(); err != nil {
				return err
			}
			return v.counts(2)
		})
	})
	if err != nil {
		return err
	}
	return v.counts(2)
}

func (v *values) twoTexts() error {
	if err := v.skipText(); err != nil {
		return err
	}
	return v.skipText()
}

// group passes over a group of consumers: its name and IDs, its pending entries (ID, time,
// count of deliveries), and its consumers (name, times, the IDs of their entries).
func (v *values) group(version, fields int) error {
	if err := v.skipText(); err != nil {
		return err
	}
	if err := v.counts(fields); err != nil {
		return err
	}
	err := v.times(func() error {
		if err := v.skip(16 + 8); err != nil {
			return err
		}
		return v.counts(1)
	})
	if err != nil {
		return err
	}
	times := uint64(8) // when it was seen
	if version >= 3 {
		times += 8 // when it was active
	}
	return v.times(func() error {
		if err := v.skipText(); err != nil {
			return err
		}
		if err := v.skip(times); err != nil {
			return err
		}
		return v.times(func() error { return v.skip(16) })
	})
}

// times reads a number, and calls one as often. Each call reads something, so a number that
// is too great ends with the input.
func (v *values) times(one func() error) error {
	n, err := v.count()
	if err != nil {
		return err
	}
	for range n {
		if err := one(); err != nil {
			return err
		}
	}
	return nil
}

// module passes over what a module has saved, up to its end.
func (v *values) module() error {
	for {
		kind, err := v.count()
		if err != nil {
			return err
		}
		switch kind {
		case moduleEnd:
			return nil
		case moduleSigned, moduleNumber:
			err = v.counts(1)
		case moduleFloat:
			err = v.skip(4)
		case moduleDouble:
			err = v.skip(8)
		case moduleString:
			err = v.skipText()
		default:
			err = fmt.Errorf("%w opcode %d of a module", ErrUnknown, kind)
		}
		if err != nil {
			return err
		}
	}
}

// moduleName reads the ID of a module's type: nine characters of 6 bits each, and a version
// of 10 bits.
func (v *values) moduleName() (string, error) {
	id, err := v.count()
	if err != nil {
		return "", err
	}
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	var name [9]byte
	for i := range name {
		name[i] = characters[id>>(58-6*i)&63]
	}
	return string(name[:]), nil
}

// moduleAux passes over data of a module that belongs to no key: the ID, when it is loaded
// as an opcode and a number, and what it saved.
func (v *values) moduleAux() error {
	name, err := v.moduleName()
	if err != nil {
		return err
	}
	opcode, err := v.count()
	if err != nil {
		return err
	}
	if opcode != moduleNumber {
		return corrupt("data of module %s without a time to load it", name)
	}
	if err := v.counts(1); err != nil {
		return err
	}
	if err := v.module(); err != nil {
		return err
	}
	return v.visitor.skipped("module data "+name, nil)
}

// keyMetadata passes over what modules of Redis 8.6 keep for the next key: for each of some
// modules four bytes that name it, and what it saved.
func (v *values) keyMetadata() error {
	return v.times(func() error {
		if err := v.skip(4); err != nil {
			return err
		}
		return v.module()
	})
}

// slotImport passes over an import of slots that goes on in Valkey 9: its name, and ranges of
// slots.
func (v *values) slotImport() error {
	if err := v.skipText(); err != nil {
		return err
	}
	if err := v.times(func() error { return v.counts(2) }); err != nil {
		return err
	}
	return v.visitor.skipped("slot import", nil)
}
