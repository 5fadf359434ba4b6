package lists

import "github.com/cellserver/cellserver/collection"

func pushOne(l *collection.List, front bool, value []byte) error {
	if front {
		return l.PushFront(value)
	}
	return l.PushBack(value)
}

func popOne(l *collection.List, front bool) ([]byte, bool) {
	if front {
		return l.PopFront()
	}
	return l.PopBack()
}
