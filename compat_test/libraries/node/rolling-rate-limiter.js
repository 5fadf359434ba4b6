'use strict';
// rolling-rate-limiter over either client: node rolling-rate-limiter.js ioredis|redis
//
// It adds each attempt to a sorted set in a transaction, so refused attempts count, too.

const { RedisRateLimiter } = require('rolling-rate-limiter');
const { assert, between, connect, elsewhere, play, sleep } = require('./report');

const [kind, task, ...rest] = process.argv.slice(2);
const HOUR = 3_600_000;

async function admitted(limiter, id, n) {
  const blocked = await Promise.all(Array.from({ length: n }, () => limiter.limit(id)));
  return blocked.filter((b) => !b).length;
}

const checks = (client) => {
  const limiter = (namespace, maxInInterval, options) => new RedisRateLimiter(
    { client, namespace: `${namespace}:`, interval: HOUR, maxInInterval, ...options });
  return {
    async 'knows the client'() {
      assert.equal(limiter('client', 1).detectedClientType, kind === 'redis' ? 'node-redis' : 'ioredis');
    },
    async 'admits exactly the limit'() {
      const limit = limiter('exact', 3);
      const seen = [];
      for (let i = 0; i < 5; i++) seen.push(await limit.limit('ann'));
      assert.deepEqual(seen, [false, false, false, true, true]);
      assert.equal(await limit.limit('bob'), false);
    },
    async 'tells what is left and when to come back'() {
      const limit = limiter('info', 2);
      const first = await limit.limitWithInfo('ann');
      assert.deepEqual([first.blocked, first.actionsRemaining, first.millisecondsUntilAllowed], [false, 1, 0]);
      await limit.limit('ann');
      const refused = await limit.limitWithInfo('ann');
      assert.deepEqual([refused.blocked, refused.blockedDueToCount, refused.actionsRemaining], [true, true, 0]);
      between(refused.millisecondsUntilAllowed, HOUR - 30_000, HOUR, 'millisecondsUntilAllowed');
    },
    async 'asking takes nothing'() {
      const limit = limiter('would', 1);
      for (let i = 0; i < 3; i++) assert.equal(await limit.wouldLimit('ann'), false);
      assert.equal(await limit.limit('ann'), false);
      assert.equal(await limit.wouldLimit('ann'), true);
    },
    async 'a least time between two calls'() {
      const limit = limiter('apart', 100, { minDifference: 60_000 });
      assert.equal(await limit.limit('ann'), false);
      const refused = await limit.limitWithInfo('ann');
      assert.deepEqual([refused.blocked, refused.blockedDueToMinDifference], [true, true]);
    },
    async 'opens again'() {
      const limit = limiter('reopen', 1, { interval: 1500 });
      assert.equal(await limit.limit('ann'), false);
      assert.equal(await limit.limit('ann'), true);
      await sleep(1700);
      assert.equal(await limit.limit('ann'), false);
    },
    async 'clear'() {
      const limit = limiter('clear', 1);
      await limit.limit('ann');
      await limit.clear('ann');
      assert.equal(await limit.limit('ann'), false);
    },
    async 'parallel calls'() {
      assert.equal(await admitted(limiter('parallel', 20), 'ann', 60), 20);
    },
    async 'two processes share a limit'() {
      const [here, there] = await Promise.all([admitted(limiter('shared', 20), 'ann', 20), elsewhere(kind, 'calls', 20)]);
      assert.equal(here + there, 20);
    },
  };
};

async function main() {
  const client = await connect(kind);
  if (task !== 'calls') return play('rolling-rate-limiter', checks(client));
  const limit = new RedisRateLimiter({ client, namespace: 'shared:', interval: HOUR, maxInInterval: 20 });
  console.log(JSON.stringify(await admitted(limit, 'ann', Number(rest[0]))));
  process.exit(0);
}

main();
