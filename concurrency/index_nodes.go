package concurrency

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/limit"
)

// index is the form of a large set. It has a header, then an array of nodes, one for each member
// and spare ones, then the names of the members, with spare memory after them. Each node belongs to
// two balanced trees; see tree.
//
//	header  form (4 bytes, of which the first is used), then 32 bits each:
//	        members, nodes there is room for, root by expiry, root by name,
//	        bytes of names in use (with those of dropped members), bytes of
//	        live names, 0 or (in mode Places) the number of calls that ones
//	        describes
//	node    expiry (64 bits), then 32 bits each: left, right and size by
//	        expiry, left, right and size by name, where the name begins;
//	        then its length (16 bits), 0
//
// In mode Places the value ends with the weights of the nodes there is room for, in the opposite
// order, so that the nodes and the names are where they are in mode Leases:
//
//	weight  sum of the places in the subtree by expiry (64 bits), places of
//	        the member (32 bits)
//
// A reference to a node is its position in the array, counted from 1; 0 is none. The order of nodes
// has no meaning: the last node moves into the place of a dropped one, so that the array has no
// gaps.
type index []byte

// ref is a reference to a node of an index.
type ref = uint32

const none ref = 0

const (
	indexHeader = 32
	nodeBytes   = 40

	headSize  = 4
	headRoom  = 8
	headRoots = 12 // offset after the two roots: by expiry, and by name
	headUsed  = 20
	headLive  = 24
	headOnes  = 28

	nodeLinks = 8 // number of links: left, right and size by expiry, and by name
	nodeName  = 32
	nodeLen   = 36

	weightBytes  = 12
	weightPlaces = 8
)

func (x index) u32(at int) uint32 { return binary.LittleEndian.Uint32(x[at:]) }

func (x index) setU32(at int, v uint32) { binary.LittleEndian.PutUint32(x[at:], v) }

func (x index) size() int { return int(x.u32(headSize)) }

func (x index) room() int { return int(x.u32(headRoom)) }

func (x index) node(r ref) int { return indexHeader + int(r-1)*nodeBytes }

func (x index) until(r ref) limit.Instant { return getInstant(x[x.node(r):]) }

// names returns the names and all bytes after them: spare memory and, in mode Places, the weights.
func (x index) names() []byte { return x[indexHeader+x.room()*nodeBytes:] }

// namesRoom returns the number of bytes for names, with the spare memory.
func (x index) namesRoom() int { return len(x.names()) - x.weights() }

func (x index) name(r ref) []byte {
	n := x.node(r)
	at := int(x.u32(n + nodeName))
	return x.names()[at : at+int(binary.LittleEndian.Uint16(x[n+nodeLen:]))]
}
