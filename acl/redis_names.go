package acl

import "strings"

// redisNames has the names of the commands of Redis 7.2 and Valkey 8.0. Rules may name commands
// that this server does not have, without effect, because user files of a Redis name them. The
// subcommands follow the name of their container, separated by bars.
const redisNames = `
acl|cat|deluser|dryrun|genpass|getuser|help|list|load|log|save|setuser|users|whoami append
asking auth bgrewriteaof bgsave bitcount bitfield bitfield_ro bitop bitpos blmove blmpop blpop
brpop brpoplpush bzmpop bzpopmax bzpopmin
client|caching|capa|getname|getredir|help|id|info|kill|list|no-evict|no-touch|pause|reply|setinfo|setname|tracking|trackinginfo|unblock|unpause
cluster|addslots|addslotsrange|bumpepoch|count-failure-reports|countkeysinslot|delslots|delslotsrange|failover|flushslots|forget|getkeysinslot|help|info|keyslot|links|meet|myid|myshardid|nodes|replicas|replicate|reset|saveconfig|set-config-epoch|setslot|shards|slaves|slot-stats|slots
command|count|docs|getkeys|getkeysandflags|help|info|list config|get|help|resetstat|rewrite|set
copy dbsize debug decr decrby del discard dump echo eval eval_ro evalsha evalsha_ro exec exists
expire expireat expiretime failover fcall fcall_ro flushall flushdb
function|delete|dump|flush|help|kill|list|load|restore|stats geoadd geodist geohash geopos
georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch geosearchstore get
getbit getdel getex getrange getset hdel hello hexists hget hgetall hincrby hincrbyfloat hkeys
hlen hmget hmset hrandfield hscan hset hsetnx hstrlen hvals incr incrby incrbyfloat info keys
lastsave latency|doctor|graph|help|histogram|history|latest|reset lcs lindex linsert llen lmove
lmpop lolwut lpop lpos lpush lpushx lrange lrem lset ltrim
memory|doctor|help|malloc-stats|purge|stats|usage mget migrate
module|help|list|load|loadex|unload monitor move mset msetnx multi
object|encoding|freq|help|idletime|refcount persist pexpire pexpireat pexpiretime pfadd pfcount
pfdebug pfmerge pfselftest ping psetex psubscribe psync pttl publish
pubsub|channels|help|numpat|numsub|shardchannels|shardnumsub punsubscribe quit randomkey
readonly readwrite rename renamenx replconf replicaof reset restore restore-asking role rpop
rpoplpush rpush rpushx sadd save scan scard script|debug|exists|flush|help|kill|load|show sdiff
sdiffstore select set setbit setex setnx setrange shutdown sinter sintercard sinterstore
sismember slaveof slowlog|get|help|len|reset smembers smismember smove sort sort_ro spop
spublish srandmember srem sscan ssubscribe strlen subscribe substr sunion sunionstore
sunsubscribe swapdb sync time touch ttl type unlink unsubscribe unwatch wait waitaof watch xack
xadd xautoclaim xclaim xdel xgroup|create|createconsumer|delconsumer|destroy|help|setid
xinfo|consumers|groups|help|stream xlen xpending xrange xread xreadgroup xrevrange xsetid xtrim
zadd zcard zcount zdiff zdiffstore zincrby zinter zintercard zinterstore zlexcount zmpop zmscore
zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore zrangestore zrank zrem
zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore
zrevrank zscan zscore zunion zunionstore
`

// redisCommands has an entry for each command and subcommand in redisNames. The value is true for a
// command that has subcommands.
var redisCommands = func() map[string]bool {
	names := make(map[string]bool)
	for _, words := range strings.Fields(redisNames) {
		command, subs, _ := strings.Cut(words, "|")
		names[command] = subs != ""
		for sub := range strings.SplitSeq(subs, "|") {
			if sub != "" {
				names[command+"|"+sub] = false
			}
		}
	}
	return names
}()

// redisCategories has the ACL categories of Redis, including those to which no command of this
// server belongs.
var redisCategories = func() map[string]bool {
	names := make(map[string]bool)
	for _, name := range strings.Fields("keyspace read write set sortedset list hash string bitmap hyperloglog geo stream " +
		"pubsub admin fast slow blocking dangerous connection transaction scripting") {
		names[name] = true
	}
	return names
}()
