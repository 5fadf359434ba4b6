package policy

import "github.com/cellserver/cellserver/limit"

// NextExpiry returns when the first entry expires, [limit.MaxInstant] if none does.
func (b *Builder) NextExpiry() limit.Instant { return b.expiring.next() }
