'use strict';
// async-ratelimiter over ioredis: node async-ratelimiter.js

const Limiter = require('async-ratelimiter');
const { assert, between, connect, elsewhere, play, sleep } = require('./report');

const [task, ...rest] = process.argv.slice(2);
const HOUR = 3_600_000;

// admitted counts the calls of n at once that found something left.
async function admitted(limiter, id, n) {
  const all = await Promise.all(Array.from({ length: n }, () => limiter.get({ id })));
  return all.filter(({ remaining }) => remaining > 0).length;
}

const checks = (db) => {
  const limiter = (namespace, max, duration = HOUR) => new Limiter({ db, namespace, max, duration });
  return {
    async 'admits exactly the limit'() {
      const limit = limiter('exact', 3);
      const seen = [];
      for (let i = 0; i < 5; i++) seen.push((await limit.get({ id: 'ann' })).remaining);
      assert.deepEqual(seen, [3, 2, 1, 0, 0]);
      assert.equal((await limit.get({ id: 'bob' })).remaining, 3);
    },
    async 'tells the total and the reset'() {
      const before = Math.floor(Date.now() / 1000);
      const { total, reset } = await limiter('reset', 7).get({ id: 'ann' });
      assert.equal(total, 7);
      between(reset, before + 3599, before + 3630, 'reset');
    },
    async 'a peek takes nothing'() {
      const limit = limiter('peek', 2);
      for (let i = 0; i < 3; i++) assert.equal((await limit.get({ id: 'ann', peek: true })).remaining, 2);
      await limit.get({ id: 'ann' });
      assert.equal((await limit.get({ id: 'ann', peek: true })).remaining, 1);
    },
    async 'limits of a call'() {
      const limit = limiter('call', 100);
      assert.equal((await limit.get({ id: 'ann', max: 1 })).remaining, 1);
      assert.equal((await limit.get({ id: 'ann', max: 1 })).remaining, 0);
    },
    async 'opens again'() {
      const limit = limiter('reopen', 1, 1500);
      assert.equal((await limit.get({ id: 'ann' })).remaining, 1);
      assert.equal((await limit.get({ id: 'ann' })).remaining, 0);
      await sleep(1700);
      assert.equal((await limit.get({ id: 'ann' })).remaining, 1);
    },
    async 'keys end'() {
      await limiter('ends', 3, 60_000).get({ id: 'ann' });
      between(await db.pttl('ends:ann'), 1, 60_000, 'PTTL');
    },
    async 'parallel calls'() {
      assert.equal(await admitted(limiter('parallel', 20), 'ann', 60), 20);
    },
    async 'two processes share a limit'() {
      const [here, there] = await Promise.all([admitted(limiter('shared', 20), 'ann', 20), elsewhere('calls', 20)]);
      assert.equal(here + there, 20);
    },
  };
};

async function main() {
  const db = await connect('ioredis');
  if (task !== 'calls') return play('async-ratelimiter', checks(db));
  const limit = new Limiter({ db, namespace: 'shared', max: 20, duration: HOUR });
  console.log(JSON.stringify(await admitted(limit, 'ann', Number(rest[0]))));
  process.exit(0);
}

main();
