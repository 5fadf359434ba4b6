package keyspace

// blobs holds what is too long for a record: the key and the value of an entry, one
// behind the other, in memory of Go's own. There are few of them and each is long,
// so that the collector has little to do.
type blobs struct {
	list [][]byte
	free []uint32
	mem  *memory
}

// blobOverhead is what a blob takes beside its bytes: its place in the list.
const blobOverhead = 24

// add keeps key and value and returns the blob's number.
func (b *blobs) add(key, value []byte) uint32 {
	blob := make([]byte, 0, grown(len(key)+len(value)))
	blob = append(append(blob, key...), value...)
	b.mem.addObjects(int64(cap(blob)) + blobOverhead)
	if n := len(b.free); n > 0 {
		i := b.free[n-1]
		b.free = b.free[:n-1]
		b.list[i] = blob
		return i
	}
	b.list = append(b.list, blob)
	return uint32(len(b.list) - 1)
}

// set replaces the value of a blob, which may be (an extension of) the one it has.
func (b *blobs) set(i uint32, keyLen int, value []byte) {
	blob := b.list[i]
	size := keyLen + len(value)
	if size > cap(blob) || size < cap(blob)/4 {
		fresh := append(make([]byte, 0, grown(size)), blob[:keyLen]...)
		b.mem.addObjects(int64(cap(fresh)) - int64(cap(blob)))
		b.list[i] = append(fresh, value...)
		return
	}
	blob = blob[:size]
	copy(blob[keyLen:], value)
	b.list[i] = blob
}

// remove forgets a blob.
func (b *blobs) remove(i uint32) {
	b.mem.addObjects(-int64(cap(b.list[i])) - blobOverhead)
	b.list[i] = nil
	b.free = append(b.free, i)
}

// grown leaves room for growth, an eighth, so that a value which grows steadily is
// not copied each time.
func grown(size int) int { return size + size/8 }
