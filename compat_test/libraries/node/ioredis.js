'use strict';
// Limiters written upon ioredis itself: scripts by defineCommand, counters in MULTI and
// in pipelines, a channel that tells of refusals.

const { ReplyError } = require('ioredis');
const { assert, between, connect, elsewhere, play, sleep } = require('./report');

const [task, ...rest] = process.argv.slice(2);

const SCRIPTS = {
  // A log of hits: KEYS[1]; limit, window in milliseconds, a member of its own.
  // Replies allowed, left, milliseconds until the oldest hit has expired.
  slidingLog: `
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
    redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
    local used = redis.call('ZCARD', KEYS[1])
    if used < limit then
      redis.call('ZADD', KEYS[1], now, ARGV[3])
      redis.call('PEXPIRE', KEYS[1], window)
      return {1, limit - used - 1, 0}
    end
    local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
    return {0, 0, tonumber(oldest[2]) + window - now}`,
  // A bucket in a hash: KEYS[1]; capacity, tokens per second, quantity.
  tokenBucket: `
    local time = redis.call('TIME')
    local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
    local capacity, rate, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
    local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
    local tokens = tonumber(state[1]) or capacity
    local at = tonumber(state[2]) or now
    tokens = math.min(capacity, tokens + math.max(0, now - at) * rate)
    local allowed = tokens >= want
    if allowed then tokens = tokens - want end
    redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
    redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate) * 2)
    return {allowed and 1 or 0, tostring(tokens)}`,
  wrong: "return redis.call('HGET', KEYS[1], 'f')",
};

function define(client) {
  for (const [name, lua] of Object.entries(SCRIPTS)) client.defineCommand(name, { numberOfKeys: 1, lua });
  return client;
}

const hits = (client, key, n, limit) => Promise.all(
  Array.from({ length: n }, (_, i) => client.slidingLog(key, limit, 3_600_000, `${process.pid}-${i}`)),
);
const admitted = (replies) => replies.filter(([allowed]) => allowed === 1).length;

// window counts a hit in MULTI, as INCR with EXPIRE NX does it.
async function window(client, key, seconds) {
  const [[, count], , [, ttl]] = await client.multi().incr(key).expire(key, seconds, 'NX').pttl(key).exec();
  return { count, ttl };
}

const checks = (client) => ({
  async 'the log admits exactly the limit'() {
    for (let left = 2; left >= 0; left--) {
      assert.deepEqual(await client.slidingLog('log', 3, 60_000, `m${left}`), [1, left, 0]);
    }
    const [allowed, left, wait] = await client.slidingLog('log', 3, 60_000, 'm');
    assert.deepEqual([allowed, left], [0, 0]);
    between(wait, 30_000, 60_000, 'the wait');
    assert.equal(await client.del('log'), 1);
    assert.equal((await client.slidingLog('log', 3, 60_000, 'm'))[0], 1);
  },
  async 'the log opens again'() {
    await client.slidingLog('log2', 1, 2000, 'a');
    const [allowed, , wait] = await client.slidingLog('log2', 1, 2000, 'b');
    assert.equal(allowed, 0);
    await sleep(wait + 20);
    assert.equal((await client.slidingLog('log2', 1, 2000, 'b'))[0], 1);
  },
  async 'the bucket admits its capacity and refills'() {
    const taken = [];
    for (let i = 0; i < 4; i++) taken.push((await client.tokenBucket('bucket', 3, 0.01, 1))[0]);
    assert.deepEqual(taken, [1, 1, 1, 0]);
    assert.equal((await client.tokenBucket('bucket2', 1, 1, 1))[0], 1);
    await sleep(1050);
    const [allowed, left] = await client.tokenBucket('bucket2', 1, 1, 1);
    assert.equal(allowed, 1);
    between(Number(left), 0, 0.001, 'the tokens left');
  },
  async 'parallel callers'() {
    assert.equal(admitted(await hits(client, 'parallel', 300, 100)), 100);
  },
  async 'two processes share a limit'() {
    const [here, there] = await Promise.all([hits(client, 'shared', 60, 60), elsewhere('hits', 60)]);
    assert.equal(admitted(here) + there, 60);
  },
  async 'EVALSHA falls back to EVAL after SCRIPT FLUSH'() {
    await client.tokenBucket('flushed', 3, 0.01, 1);
    await client.script('FLUSH');
    assert.deepEqual((await client.tokenBucket('flushed', 3, 0.01, 1))[0], 1);
    await client.script('FLUSH');
    const replies = await client.pipeline().tokenBucket('flushed', 3, 0.01, 1).tokenBucket('flushed', 3, 0.01, 1).exec();
    assert.deepEqual(replies.map(([error, [allowed]]) => [error, allowed]), [[null, 1], [null, 0]]);
  },
  async 'a counter in MULTI'() {
    const replies = await Promise.all(Array.from({ length: 30 }, () => window(client, 'window', 60)));
    assert.deepEqual(replies.map((r) => r.count).sort((a, b) => a - b), Array.from({ length: 30 }, (_, i) => i + 1));
    for (const { ttl } of replies) between(ttl, 30_000, 60_000, 'the ttl');
  },
  async 'WATCH refuses a transaction after a change'() {
    const other = await connect('ioredis');
    await client.set('watched', 1);
    await client.watch('watched');
    await other.incr('watched');
    assert.equal(await client.multi().incr('watched').exec(), null);
    assert.equal(await client.get('watched'), '2');
    other.disconnect();
  },
  async 'a pipeline keeps order, errors and neighbours'() {
    await client.hset('hash', 'f', 'v');
    const replies = await client.pipeline().incr('n').incr('hash').incrby('n', 41).exec();
    assert.equal(replies[0][1], 1);
    assert.ok(replies[1][0] instanceof ReplyError);
    assert.match(replies[1][0].message, /^WRONGTYPE /);
    assert.equal(replies[2][1], 42);
  },
  async 'publish and subscribe'() {
    const subscriber = await connect('ioredis');
    const got = [];
    const all = new Promise((resolve) => {
      subscriber.on('message', (channel, message) => got.push(`${channel} ${message}`));
      subscriber.on('pmessage', (pattern, channel, message) => {
        got.push(`${pattern} ${channel} ${message}`);
        if (message === 'last') resolve();
      });
    });
    assert.equal(await subscriber.subscribe('refused'), 1);
    assert.equal(await subscriber.psubscribe('ref*'), 2);
    assert.equal(await client.publish('refused', 'ann'), 2);
    assert.equal(await client.publish('refunds', 'last'), 1);
    await all;
    assert.deepEqual(got, ['refused ann', 'ref* refused ann', 'ref* refunds last']);
    assert.equal(await subscriber.unsubscribe('refused'), 1);
    assert.equal(await client.publish('refused', 'bob'), 1);
    subscriber.disconnect();
  },
  async 'an error of a script'() {
    await client.set('text', 'x');
    const why = await client.wrong('text').catch((e) => e);
    assert.ok(why instanceof ReplyError, String(why));
    assert.match(why.message, /WRONGTYPE .* script: [0-9a-f]{40}, on @user_script:1\./);
  },
});

async function main() {
  const client = define(await connect('ioredis'));
  if (task === 'hits') {
    console.log(admitted(await hits(client, 'shared', Number(rest[0]), 60)));
    process.exit(0);
  }
  await play('ioredis', checks(client));
}

main();
