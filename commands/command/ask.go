package command

import "github.com/cellserver/cellserver/decide"

// NewAsk returns an ask about the key, for the running command to fill in and for Parse
// only. Of what it had before it keeps what the family of another call has left there.
func (c *Call) NewAsk(f decide.Family, key []byte) *decide.Ask {
	a := &c.ask
	if c.Collect != nil {
		a = c.Collect()
	}
	a.DB, a.Key, a.Family, a.Next, a.Err = c.Client.Selected(), key, f, nil, nil
	return a
}
