'use strict';
// Limiters written upon node-redis itself: scripts given to createClient, counters in
// MULTI.

const { createClient, defineScript, ErrorReply, WatchError } = require('redis');
const { address, assert, between, elsewhere, play, sleep } = require('./report');

const [task, ...rest] = process.argv.slice(2);

// fixedWindow replies the hits so far, and the milliseconds until the window ends.
const fixedWindow = defineScript({
  NUMBER_OF_KEYS: 1,
  SCRIPT: `
    local count = redis.call('INCRBY', KEYS[1], ARGV[2])
    if count == tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
    return {count, redis.call('PTTL', KEYS[1])}`,
  parseCommand(parser, key, milliseconds, quantity = 1) {
    parser.pushKey(key);
    parser.push(String(milliseconds), String(quantity));
  },
  transformReply: ([count, ttl]) => ({ count, ttl }),
});

function start() {
  const client = createClient({ socket: address, scripts: { fixedWindow } });
  client.on('error', (e) => console.error(`redis: ${e.message}`));
  return client.connect();
}

const hits = async (client, n, limit) => (await Promise.all(
  Array.from({ length: n }, () => client.fixedWindow('shared', 3_600_000)),
)).filter(({ count }) => count <= limit).length;

const checks = (client) => ({
  async 'a script admits exactly the limit'() {
    for (let i = 1; i <= 4; i++) {
      const { count, ttl } = await client.fixedWindow('exact', 60_000);
      assert.equal(count, i);
      between(ttl, 30_000, 60_000, 'the ttl');
    }
    assert.equal((await client.fixedWindow('exact', 60_000, 6)).count, 10);
    assert.equal(await client.del('exact'), 1);
    assert.equal((await client.fixedWindow('exact', 60_000)).count, 1);
  },
  async 'the window opens again'() {
    await client.fixedWindow('reopen', 2000);
    const { count, ttl } = await client.fixedWindow('reopen', 2000);
    assert.equal(count, 2);
    await sleep(ttl + 20);
    assert.equal((await client.fixedWindow('reopen', 2000)).count, 1);
  },
  async 'two processes share a limit'() {
    const [here, there] = await Promise.all([hits(client, 60, 60), elsewhere('hits', 60)]);
    assert.equal(here + there, 60);
  },
  async 'EVALSHA falls back to EVAL after SCRIPT FLUSH'() {
    await client.fixedWindow('flushed', 60_000);
    await client.scriptFlush();
    assert.equal((await client.fixedWindow('flushed', 60_000)).count, 2);
  },
  async 'a script in MULTI'() {
    const replies = await client.multi().fixedWindow('multi', 60_000).fixedWindow('multi', 60_000).get('multi').exec();
    assert.deepEqual([replies[0].count, replies[1].count, replies[2]], [1, 2, '2']);
  },
  async 'WATCH refuses a transaction after a change'() {
    const other = await start();
    await client.watch('watched');
    await other.incr('watched');
    await assert.rejects(client.multi().incr('watched').exec(), WatchError);
    assert.equal(await client.get('watched'), '1');
    other.destroy();
  },
  async 'publish and subscribe'() {
    const subscriber = await start();
    const message = new Promise((resolve) => {
      subscriber.subscribe('refused', (...got) => resolve(got)).then(() => client.publish('refused', 'ann'));
    });
    assert.deepEqual(await message, ['ann', 'refused']);
    await subscriber.unsubscribe('refused');
    assert.equal(await client.publish('refused', 'bob'), 0);
    subscriber.destroy();
  },
  async 'an error of a script'() {
    await client.hSet('hash', 'f', 'v');
    const why = await client.fixedWindow('hash', 1000).catch((e) => e);
    assert.ok(why instanceof ErrorReply, String(why));
    assert.match(why.message, /WRONGTYPE .* script: [0-9a-f]{40}, on @user_script:2\./);
  },
});

async function main() {
  const client = await start();
  if (task === 'hits') {
    console.log(await hits(client, Number(rest[0]), 60));
    process.exit(0);
  }
  await play('redis', checks(client));
}

main();
