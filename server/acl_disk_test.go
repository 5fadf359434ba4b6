package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/acl"
	"github.com/cellserver/cellserver/commands/env"
)

// slowUserFile is a file of users on a disk that answers late.
type slowUserFile struct{ came, answer chan struct{} }

func (f slowUserFile) Load(*acl.Users) ([]*acl.User, error) {
	f.came <- struct{}{}
	<-f.answer
	return nil, nil
}

func (f slowUserFile) Save(us *acl.Users) error {
	_, err := f.Load(us)
	return err
}

// TestNobodyWaitsForTheDiskOfUsers: not even who wants the store for itself.
func TestNobodyWaitsForTheDiskOfUsers(t *testing.T) {
	for _, call := range []string{"LOAD", "SAVE"} {
		f := slowUserFile{make(chan struct{}), make(chan struct{})}
		e := startEngineWith(t, transports()[0], func(st env.Store) env.Store { return st }, func(o *env.Options) { o.UserFile = f })
		admin, other := dial(t, "tcp", e.addr), dial(t, "tcp", e.addr)
		admin.command("ACL", call)
		<-f.came
		const loop = "local n = 0 while n < 1 do n = n + 1 end return redis.call('SET', KEYS[1], n)"
		require.Equal(t, okReply, other.do("EVAL", loop, "1", "k"))
		require.Equal(t, bulk("1"), other.do("GET", "k"))
		silent(t, admin)
		close(f.answer)
		admin.expect(okReply)
	}
}
