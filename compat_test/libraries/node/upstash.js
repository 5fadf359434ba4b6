'use strict';
// @upstash/ratelimit with a redis object of our own. The package's client speaks HTTP to
// a service; what it asks of it is eval, evalsha, get, set and a few more, which ioredis
// can do.

const { Ratelimit } = require('@upstash/ratelimit');
const { assert, between, connect, elsewhere, play, sleep, windowStart } = require('./report');

const [task, ...rest] = process.argv.slice(2);

// plain is a script without its first line, "#!lua flags=allow-key-locking": that flag
// is the service's own, and Redis refuses a script with a flag that it does not know.
const plain = (script) => script.replace(/^#!lua flags=allow-key-locking\n/, '');

// over makes the redis object. EVALSHA gets the sum of the whole script, so the sum of
// the plain one is kept beside it.
function over(client) {
  const sums = new Map();
  const { createHash } = require('node:crypto');
  const sum = (text) => createHash('sha1').update(text).digest('hex');
  return {
    evalsha: (sha, keys, args) => client.evalsha(sums.get(sha) ?? sha, keys.length, ...keys, ...args),
    eval(script, keys, args) {
      sums.set(sum(script), sum(plain(script)));
      return client.eval(plain(script), keys.length, ...keys, ...args);
    },
    get: (key) => client.get(key),
    set: (key, value) => client.set(key, value),
    del: (...keys) => client.del(...keys),
  };
}

const limits = (client, prefix, limiter, options = {}) => new Ratelimit({
  redis: over(client), prefix, limiter, ephemeralCache: false, ...options,
});

// take asks n times at once and returns how many passed.
async function take(limit, id, n) {
  const replies = await Promise.all(Array.from({ length: n }, () => limit.limit(id)));
  return replies.filter(({ success }) => success).length;
}

const shared = (client) => limits(client, 'shared', Ratelimit.tokenBucket(1, '1 h', 40));

const checks = (client) => ({
  async 'fixedWindow admits exactly the limit'() {
    const limit = limits(client, 'fixed', Ratelimit.fixedWindow(3, '1 d'));
    for (let left = 2; left >= 0; left--) {
      const { success, remaining } = await limit.limit('k');
      assert.deepEqual([success, remaining], [true, left]);
    }
    const refused = await limit.limit('k');
    assert.equal(refused.success, false);
    between(refused.reset - Date.now(), -1000, 86_400_000, 'the time until the reset');
  },
  async 'fixedWindow opens again'() {
    const limit = limits(client, 'fixed2', Ratelimit.fixedWindow(1, '2 s'));
    await windowStart(2000);
    assert.equal((await limit.limit('k')).success, true);
    const { success, reset } = await limit.limit('k');
    assert.equal(success, false);
    await sleep(Math.max(0, reset - Date.now()) + 20);
    assert.equal((await limit.limit('k')).success, true);
  },
  async 'slidingWindow admits exactly the limit'() {
    const limit = limits(client, 'sliding', Ratelimit.slidingWindow(3, '1 d'));
    for (let left = 2; left >= 0; left--) {
      const { success, remaining } = await limit.limit('k');
      assert.deepEqual([success, remaining], [true, left]);
    }
    assert.equal((await limit.limit('k')).success, false);
  },
  async 'slidingWindow weighs the window before'() {
    const limit = limits(client, 'sliding2', Ratelimit.slidingWindow(4, '2 s'));
    await windowStart(2000);
    assert.equal(await take(limit, 'k', 6), 4);
    await windowStart(2000);
    // All four still count at the edge, and none of them a whole window later.
    assert.ok(await take(limit, 'k', 4) < 4);
    await sleep(4100);
    assert.equal((await limit.limit('k')).success, true);
  },
  async 'tokenBucket admits its capacity and refills'() {
    const limit = limits(client, 'bucket', Ratelimit.tokenBucket(2, '2 s', 3));
    assert.equal(await take(limits(client, 'bucket1', Ratelimit.tokenBucket(1, '1 d', 3)), 'k', 9), 3);
    assert.equal((await limit.limit('k', { rate: 3 })).remaining, 0);
    const { success, reset } = await limit.limit('k');
    assert.equal(success, false);
    await sleep(Math.max(0, reset - Date.now()) + 20);
    assert.equal((await limit.limit('k', { rate: 2 })).success, true);
  },
  async 'getRemaining, a refund and resetUsedTokens'() {
    for (const [name, limiter] of [
      ['fixed', Ratelimit.fixedWindow(5, '1 d')],
      ['sliding', Ratelimit.slidingWindow(5, '1 d')],
      ['bucket', Ratelimit.tokenBucket(1, '1 d', 5)],
    ]) {
      const limit = limits(client, `manage-${name}`, limiter);
      await limit.limit('k', { rate: 5 });
      assert.equal((await limit.getRemaining('k')).remaining, 0, name);
      await limit.limit('k', { rate: -2 });
      assert.equal((await limit.getRemaining('k')).remaining, 2, name);
      await limit.resetUsedTokens('k');
      assert.equal((await limit.getRemaining('k')).remaining, 5, name);
    }
  },
  async 'a limit changed while it runs'() {
    const limit = limits(client, 'dynamic', Ratelimit.fixedWindow(1, '1 d'), { dynamicLimits: true });
    await limit.setDynamicLimit({ limit: 3 });
    assert.equal(await take(limit, 'k', 5), 3);
    assert.equal((await limit.getDynamicLimit()).dynamicLimit, 3);
  },
  async 'parallel callers'() {
    assert.equal(await take(limits(client, 'parallel', Ratelimit.slidingWindow(50, '30 d')), 'k', 200), 50);
  },
  async 'two processes share a limit'() {
    const [here, there] = await Promise.all([take(shared(client), 'k', 40), elsewhere('take', 40)]);
    assert.equal(here + there, 40);
  },
  async 'EVALSHA falls back to EVAL after SCRIPT FLUSH'() {
    const limit = limits(client, 'flushed', Ratelimit.fixedWindow(3, '1 d'));
    await limit.limit('k');
    await client.script('FLUSH');
    assert.equal((await limit.limit('k')).remaining, 1);
  },
  async 'an error of the server'() {
    await client.set('wrong:k', 'x');
    await assert.rejects(limits(client, 'wrong', Ratelimit.tokenBucket(1, '1 d', 5)).limit('k'), /WRONGTYPE/);
  },
});

async function main() {
  const client = await connect('ioredis');
  if (task === 'take') {
    console.log(await take(shared(client), 'k', Number(rest[0])));
    process.exit(0);
  }
  await play('@upstash/ratelimit', checks(client));
}

main();
