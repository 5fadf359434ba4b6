'use strict';
// RateLimiterRedis and what is built upon it: node rate-limiter-flexible.js ioredis|redis

const { once } = require('node:events');
const {
  RateLimiterRedis, RateLimiterMemory, RateLimiterUnion, BurstyRateLimiter, RateLimiterRes, RateLimiterQueue,
} = require('rate-limiter-flexible');
const { assert, between, connect, elsewhere, outcomes, play, sleep } = require('./report');

const [kind, task, ...rest] = process.argv.slice(2);

function limiter(client, options) {
  return new RateLimiterRedis({ storeClient: client, useRedisPackage: kind === 'redis', ...options });
}

// consume calls n times at once; a refusal is a RateLimiterRes, and anything else an error.
async function consume(limit, key, n) {
  const all = await outcomes(Array.from({ length: n }, () => limit.consume(key)));
  for (const why of all.refused) assert.ok(why instanceof RateLimiterRes, String(why));
  return all;
}

const checks = (client) => ({
  async 'admits exactly the points'() {
    const limit = limiter(client, { keyPrefix: 'exact', points: 5, duration: 60 });
    for (let left = 4; left >= 0; left--) {
      assert.equal((await limit.consume('k')).remainingPoints, left);
    }
    const why = await limit.consume('k').then(() => assert.fail('the sixth passed'), (e) => e);
    assert.ok(why instanceof RateLimiterRes, String(why));
    assert.equal(why.remainingPoints, 0);
    assert.equal(why.consumedPoints, 6);
    between(why.msBeforeNext, 30_000, 60_000, 'msBeforeNext');
  },
  async 'opens again'() {
    const limit = limiter(client, { keyPrefix: 'reopen', points: 1, duration: 2 });
    await limit.consume('k');
    const why = await limit.consume('k').then(() => assert.fail('the second passed'), (e) => e);
    between(why.msBeforeNext, 1, 2000, 'msBeforeNext');
    await sleep(why.msBeforeNext + 20);
    assert.equal((await limit.consume('k')).isFirstInDuration, true);
  },
  async 'parallel callers'() {
    const limit = limiter(client, { keyPrefix: 'parallel', points: 50, duration: 60 });
    const { passed, refused } = await consume(limit, 'k', 200);
    assert.deepEqual([passed.length, refused.length], [50, 150]);
  },
  async 'two processes share a limit'() {
    const limit = limiter(client, { keyPrefix: 'shared', points: 40, duration: 60 });
    const [here, there] = await Promise.all([consume(limit, 'k', 40), elsewhere(kind, 'consume', 40)]);
    assert.equal(here.passed.length + there, 40);
  },
  async 'penalty, reward, get, set and delete'() {
    const limit = limiter(client, { keyPrefix: 'manage', points: 5, duration: 60 });
    assert.equal(await limit.get('k'), null);
    assert.equal((await limit.penalty('k', 3)).consumedPoints, 3);
    assert.equal((await limit.reward('k', 2)).consumedPoints, 1);
    const got = await limit.get('k');
    assert.deepEqual([got.consumedPoints, got.remainingPoints], [1, 4]);
    between(got.msBeforeNext, 30_000, 60_000, 'msBeforeNext');
    await limit.set('k', 5, 30);
    await limit.consume('k').then(() => assert.fail('it passed after set'), () => {});
    assert.equal(await limit.delete('k'), true);
    assert.equal(await limit.delete('k'), false);
    assert.equal((await limit.consume('k')).remainingPoints, 4);
    await limit.set('forever', 2, 0);
    assert.equal((await limit.get('forever')).msBeforeNext, -1);
  },
  async block() {
    const limit = limiter(client, { keyPrefix: 'block', points: 2, duration: 60, blockDuration: 300 });
    await limit.block('asked', 100);
    const asked = await limit.consume('asked').then(() => assert.fail('it passed'), (e) => e);
    between(asked.msBeforeNext, 70_000, 100_000, 'msBeforeNext');
    await consume(limit, 'over', 2);
    await limit.consume('over').then(() => assert.fail('it passed'), (e) => e);
    const over = await limit.get('over');
    between(over.msBeforeNext, 200_000, 300_000, 'msBeforeNext');
  },
  async 'a union of two limits'() {
    const union = new RateLimiterUnion(
      limiter(client, { keyPrefix: 'short', points: 2, duration: 60 }),
      limiter(client, { keyPrefix: 'long', points: 5, duration: 3600 }),
    );
    assert.equal((await union.consume('k')).long.remainingPoints, 4);
    await union.consume('k');
    const why = await union.consume('k').then(() => assert.fail('the third passed'), (e) => e);
    assert.equal(why.short.remainingPoints, 0);
    assert.equal(why.long, undefined);
  },
  async 'a burst on top of a limit'() {
    const bursty = new BurstyRateLimiter(
      limiter(client, { keyPrefix: 'steady', points: 2, duration: 60 }),
      limiter(client, { keyPrefix: 'burst', points: 3, duration: 60 }),
    );
    const { passed, refused } = await consume(bursty, 'k', 9);
    assert.deepEqual([passed.length, refused.length], [5, 4]);
  },
  async 'a queue waits its turn'() {
    const queue = new RateLimiterQueue(limiter(client, { keyPrefix: 'queue', points: 2, duration: 1 }));
    const before = Date.now();
    await Promise.all([1, 2, 3, 4, 5].map(() => queue.removeTokens(1, 'k')));
    assert.ok(Date.now() - before > 1000, 'five tokens in a second');
  },
  async 'a dead server: the insurance'() {
    const other = await connect(kind);
    const limit = limiter(other, {
      keyPrefix: 'insured', points: 9, duration: 60, rejectIfRedisNotReady: true,
      insuranceLimiter: new RateLimiterMemory({ keyPrefix: 'insured', points: 1, duration: 60 }),
    });
    assert.equal((await limit.consume('k')).remainingPoints, 8);
    // ioredis is not ready to the limiter once its connection has been closed on both sides.
    const gone = kind === 'ioredis' && once(other, 'end');
    await (kind === 'ioredis' ? other.disconnect() : other.destroy());
    await gone;
    assert.equal((await limit.consume('k')).remainingPoints, 0);
    await limit.consume('k').then(() => assert.fail('the insurance let a second pass'), (e) => assert.ok(e instanceof RateLimiterRes));
  },
  async 'an error of the server'() {
    await (kind === 'ioredis' ? client.hset('wrong:k', 'f', 'v') : client.hSet('wrong:k', 'f', 'v'));
    const why = await limiter(client, { keyPrefix: 'wrong', points: 1, duration: 60 }).consume('k').catch((e) => e);
    assert.ok(why instanceof Error, `got ${JSON.stringify(why)}`);
    assert.match(why.message, /WRONGTYPE/);
  },
});

async function main() {
  const client = await connect(kind);
  if (task === 'consume') {
    const { passed } = await consume(limiter(client, { keyPrefix: 'shared', points: 40, duration: 60 }), 'k', Number(rest[0]));
    console.log(passed.length);
    process.exit(0);
  }
  await play('rate-limiter-flexible', checks(client));
}

main();
