package replication

import (
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
)

const (
	errSync    resp.Error = "ERR SYNC is not supported: this server and Redis 2.8 and later replicate by PSYNC"
	errPending resp.Error = "ERR SYNC and PSYNC are invalid with pending output"
	errReplID  resp.Error = "ERR Invalid replication id"
	errVersion resp.Error = "ERR Invalid version"
	errAddress resp.Error = "ERR REPLCONF ip-address provided by replica instance is not an address"
)

const (
	maxReplID  = 64 // a replication ID has 40 characters
	maxVersion = 32
)

// said has the values that a client has sent by REPLCONF before its PSYNC. Only the goroutine that
// feeds the client uses it.
type said struct {
	port        int
	ip, version string
	dataSet     string
	tzdata      string
	capa        protocol.Capa
}

// psync implements PSYNC: it replies, and has the node send the replication stream to the client.
// As in Redis, a client that is a replica already gets no reply.
func psync(c *command.Call) {
	if c.Client.Marks&command.MarkReplica != 0 {
		return
	}
	offset, ok := arg.Int(c.Args[2])
	switch {
	case len(c.W.Buf) > 0: // the output that is not sent yet would get into the stream
		c.Fail(errPending)
		return
	case !ok:
		c.Fail(resp.ErrNotInteger)
		return
	case len(c.Args[1]) == 0 || len(c.Args[1]) > maxReplID:
		c.Fail(errReplID)
		return
	}
	says := command.ClientState[said](c.Client, c.Cmd.Slot())
	reply, pump, err := c.Server.Node().PSync(protocol.PSync{
		Client: c.Client.ID, Peer: c.Client.Peer, ReplID: string(c.Args[1]), Offset: offset,
		Failover: len(c.Args) > 3 && arg.IsWord(c.Args[3], "FAILOVER"),
		Port:     says.port, IP: says.ip, Capa: says.capa, DataSet: says.dataSet, Tzdata: says.tzdata, Addr: c.Client.Addr(), Version: says.version,
	})
	if err != "" {
		c.Fail(err)
		return
	}
	c.W.Raw(reply)
	if pump != nil {
		c.Server.Host.Messages.Pump(c, pump)
	}
}

// replconf implements REPLCONF, whose arguments are pairs of an option and its value.
// Acknowledgements get no reply.
func replconf(c *command.Call) {
	if len(c.Args)%2 == 0 {
		c.Fail(resp.ErrSyntax)
		return
	}
	for words := c.Args[1:]; len(words) > 0; words = words[2:] {
		silent, err := conf(c, words)
		if err != "" {
			c.Fail(err)
			return
		}
		if silent {
			answerInside(c)
			return
		}
	}
	c.OK()
}

// answerInside writes a null reply in a transaction, where each command must have a reply.
func answerInside(c *command.Call) {
	if c.Client.Exclusive {
		c.W.Null()
	}
}

// conf handles the option and the value at the beginning of words. silent says that REPLCONF gets
// no reply. err is "" if the pair is valid.
func conf(c *command.Call, words [][]byte) (silent bool, err resp.Error) {
	name, value := words[0], words[1]
	switch {
	case arg.IsWord(name, "ACK"):
		hear(c, words)
		return true, ""
	case arg.IsWord(name, "FACK"), arg.IsWord(name, "GETACK"):
		return true, ""
	case arg.IsWord(name, "LISTENING-PORT"):
		n, ok := arg.Int(value)
		if !ok || n < 0 || n > 65535 {
			return false, resp.ErrNotInteger
		}
		saidBy(c).port = int(n)
	case arg.IsWord(name, "IP-ADDRESS"):
		switch {
		case len(value) > maxHost:
			return false, resp.Error("ERR REPLCONF ip-address provided by replica instance is too long: " + strconv.Itoa(len(value)) + " bytes")
		case len(value) > 0 && !isHost(value):
			return false, errAddress
		}
		saidBy(c).ip = string(value)
	case arg.IsWord(name, "CAPA"):
		saidBy(c).capa |= capa(value)
		if id, is := dataSet(value); is {
			saidBy(c).dataSet = id
		}
		if release, is := tzdata(value); is {
			saidBy(c).tzdata = release
		}
	case arg.IsWord(name, "VERSION"):
		if len(value) > maxVersion || !isHost(value) {
			return false, errVersion
		}
		saidBy(c).version = string(value)
	default:
		return false, resp.Error("ERR Unrecognized REPLCONF option: " + string(command.Echo(name, command.MaxEcho)))
	}
	return false, ""
}

func saidBy(c *command.Call) *said { return command.ClientState[said](c.Client, c.Cmd.Slot()) }

// capa returns the capability with the name word, a value of REPLCONF capa; 0 if it is unknown.
func capa(word []byte) protocol.Capa {
	switch {
	case arg.IsWord(word, "EOF"):
		return protocol.CapaEOF
	case arg.IsWord(word, "PSYNC2"):
		return protocol.CapaPSYNC2
	case arg.IsWord(word, "CELL1"):
		return protocol.CapaCell1
	}
	return 0
}

// dataSetCapa is the prefix of the value of REPLCONF capa that has the ID of the replica's data
// set, or "?" in place of the ID.
const dataSetCapa = "data:"

// dataSetDigits is the number of hexadecimal digits in the ID of a data set.
const dataSetDigits = 40

// dataSet returns the ID of the replica's data set if word, a value of REPLCONF capa, contains it.
// The ID is "?" if the replica does not know it. is is false if word contains no valid ID.
func dataSet(word []byte) (id string, is bool) {
	if len(word) > len(dataSetCapa)+dataSetDigits {
		return "", false
	}
	id, is = strings.CutPrefix(string(word), dataSetCapa)
	return id, is && (id == "?" || len(id) == dataSetDigits && strings.Trim(id, "0123456789abcdef") == "")
}

// tzdataCapa is the prefix of the value of REPLCONF capa that has the replica's release of tzdata.
const tzdataCapa = "tzdata:"

// mostRelease is the maximum number of bytes of a release of tzdata that is kept. They are digits and
// small letters, as in 2025c.
const mostRelease = 16

// tzdata returns the replica's release of tzdata if word, a value of REPLCONF capa, contains it. It
// returns false if word contains no valid release.
func tzdata(word []byte) (release string, is bool) {
	if len(word) > len(tzdataCapa)+mostRelease {
		return "", false
	}
	release, is = strings.CutPrefix(string(word), tzdataCapa)
	return release, is && release != "" && strings.Trim(release, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// hear passes the acknowledgement in words, ACK offset [FACK offset], to the node. Like Redis, it
// ignores clients that are not replicas, and invalid offsets.
func hear(c *command.Call, words [][]byte) {
	ack, ok := arg.Int(words[1])
	if c.Client.Marks&command.MarkReplica == 0 || !ok || ack < 0 {
		return
	}
	says := protocol.Ack{Applied: uint64(ack)}
	if len(words) >= 4 && arg.IsWord(words[2], "FACK") {
		if fack, ok := arg.Int(words[3]); ok && fack >= 0 {
			says.Synced, says.HasSynced = uint64(fack), true
		}
	}
	c.Server.Node().Acknowledge(c.Client.ID, says)
}
