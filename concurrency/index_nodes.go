package concurrency

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/limit"
)

// index is the form of a large set: a header, a row of nodes with one for each member and spare
// ones, and the members' names with spare memory after them. The nodes are linked to two balanced
// trees over the same members, see tree.
//
//	header  form (4 bytes, the first counts), then 32 bits each: members, nodes
//	        there is room for, root by expiry, root by name, bytes of names in
//	        use (names of dropped members included), bytes of live names, 0
//	node    expiry (64 bits), then 32 bits each: left, right and size by expiry,
//	        left, right and size by name, where the name begins; its length (16
//	        bits), 0
//
// A reference is the position of a node in the row, counted from 1; 0 is none. The order of the
// nodes has no meaning: the last one moves into the place of a dropped one, so that the row has no
// gaps.
type index []byte

// ref is a reference to a node.
type ref = uint32

const none ref = 0

const (
	indexHeader = 32
	nodeBytes   = 40

	headSize  = 4
	headRoom  = 8
	headRoots = 12 // by expiry, then by name
	headUsed  = 20
	headLive  = 24

	nodeLinks = 8 // left, right and size by expiry, then by name
	nodeName  = 32
	nodeLen   = 36
)

func (x index) u32(at int) uint32 { return binary.LittleEndian.Uint32(x[at:]) }

func (x index) setU32(at int, v uint32) { binary.LittleEndian.PutUint32(x[at:], v) }

func (x index) size() int { return int(x.u32(headSize)) }

func (x index) room() int { return int(x.u32(headRoom)) }

func (x index) node(r ref) int { return indexHeader + int(r-1)*nodeBytes }

func (x index) until(r ref) limit.Instant { return getInstant(x[x.node(r):]) }

// names returns all names and the spare memory after them.
func (x index) names() []byte { return x[indexHeader+x.room()*nodeBytes:] }

func (x index) name(r ref) []byte {
	n := x.node(r)
	at := int(x.u32(n + nodeName))
	return x.names()[at : at+int(binary.LittleEndian.Uint16(x[n+nodeLen:]))]
}
