package persistence

import "github.com/cellserver/cellserver/shared"

// values has long values that are to be written with a buffer of bytes, each at its offset At in
// the buffer. They are not copied: the memory of the stored values is held until the values have
// been written or dropped.
type values struct {
	refs  []shared.Ref
	bytes int // sum of the lengths of the values
}

// apart is the minimum length in bytes of a value that is written by a separate call. Shorter
// values are copied.
const apart = 64 << 10

// add appends record to dst and returns the result. It becomes the owner of refs, the long values
// that belong to record: it copies the shorter ones to dst and adds the others to v.
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

// take returns the content of v and empties v.
func (v *values) take() values {
	all := *v
	*v = values{}
	return all
}

// release releases all values of v and empties v.
func (v *values) release() {
	all := v.take()
	shared.ReleaseAll(all.refs)
}

// write writes buf, with the values of v in their places, to f.
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
