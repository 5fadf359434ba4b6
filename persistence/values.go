package persistence

import "github.com/cellserver/cellserver/shared"

// values are long values that belong into bytes to be written, each at its At. They are stored
// values, held until they are written or dropped.
type values struct {
	refs  []shared.Ref
	bytes int
}

// apart is the smallest length in bytes of a value that is worth a write call of its own.
const apart = 64 << 10

// add appends record to dst and takes over refs, which belong into it. It copies the shorter ones.
func (v *values) add(dst, record []byte, refs []shared.Ref) []byte {
	from := 0
	for _, r := range refs {
		dst = append(dst, record[from:r.At]...)
		from = r.At
		if len(r.Bytes) < apart {
			dst = append(dst, r.Bytes...)
			r.Release()
			continue
		}
		r.At = len(dst)
		v.refs = append(v.refs, r)
		v.bytes += len(r.Bytes)
	}
	return append(dst, record[from:]...)
}

// take empties v and returns its former content.
func (v *values) take() values {
	all := *v
	*v = values{}
	return all
}

// release releases all values.
func (v *values) release() {
	all := v.take()
	shared.ReleaseAll(all.refs)
}

// write writes buf to f, with the values in their places.
func (v *values) write(f File, buf []byte) error {
	from := 0
	for i := range v.refs {
		r := &v.refs[i]
		if err := writeAll(f, buf[from:r.At]); err != nil {
			return err
		}
		if err := writeAll(f, r.Bytes); err != nil {
			return err
		}
		from = r.At
	}
	if from == len(buf) {
		return nil
	}
	return writeAll(f, buf[from:])
}
