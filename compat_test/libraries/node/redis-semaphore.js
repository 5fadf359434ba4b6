'use strict';
// redis-semaphore over ioredis: node redis-semaphore.js

const { MultiSemaphore, Mutex, RedlockMutex, Semaphore, TimeoutError } = require('redis-semaphore');
const { assert, between, connect, elsewhere, outcomes, play, sleep } = require('./report');

const [task] = process.argv.slice(2);
// Nobody waits, and a permit lasts longer than the program.
const ONCE = { acquireAttemptsLimit: 1, lockTimeout: 3_600_000 };

// holders lets n callers try to get one of six permits, and returns those that did.
async function holders(redis, n) {
  const all = Array.from({ length: n }, () => new Semaphore(redis, 'shared', 6, ONCE));
  const got = await Promise.all(all.map((s) => s.tryAcquire()));
  return all.filter((_, i) => got[i]);
}

const checks = (redis) => ({
  async 'a mutex has one holder'() {
    const [first, second] = [new Mutex(redis, 'one', ONCE), new Mutex(redis, 'one', ONCE)];
    assert.equal(await first.tryAcquire(), true);
    assert.equal(await second.tryAcquire(), false);
    await second.release();
    assert.equal(await second.tryAcquire(), false);
    await first.release();
    assert.equal(await second.tryAcquire(), true);
    await second.release();
    assert.equal(await redis.exists('mutex:one'), 0);
  },
  async 'waiting ends in time'() {
    const holder = new Mutex(redis, 'wait', ONCE);
    await holder.acquire();
    const { refused } = await outcomes([new Mutex(redis, 'wait', { acquireTimeout: 200 }).acquire()]);
    assert.ok(refused[0] instanceof TimeoutError, `${refused[0]}`);
    const waiting = new Mutex(redis, 'wait', { acquireTimeout: 30_000 }).acquire();
    await holder.release();
    await waiting;
  },
  async 'a lock that nobody prolongs ends'() {
    const lock = new Mutex(redis, 'ends', { ...ONCE, lockTimeout: 1000, refreshInterval: 0 });
    await lock.acquire();
    between(await redis.pttl('mutex:ends'), 1, 1000, 'PTTL');
    await sleep(1200);
    assert.equal(await new Mutex(redis, 'ends', ONCE).tryAcquire(), true);
  },
  async 'a lock that is prolonged stays'() {
    const lock = new Mutex(redis, 'stays', { ...ONCE, lockTimeout: 2000, refreshInterval: 100 });
    await lock.acquire();
    await sleep(2500);
    assert.equal(await new Mutex(redis, 'stays', ONCE).tryAcquire(), false);
    assert.equal(lock.isAcquired, true);
    await lock.release();
  },
  async 'a lost lock is noticed'() {
    const lost = new Promise((resolve) => {
      const lock = new Mutex(redis, 'lost', { ...ONCE, refreshInterval: 50, onLockLost: resolve });
      lock.acquire().then(() => redis.del('mutex:lost'));
    });
    assert.match((await lost).message, /lost/i);
  },
  async 'a semaphore has as many holders as it has permits'() {
    const all = Array.from({ length: 9 }, () => new Semaphore(redis, 'many', 4, ONCE));
    const got = await Promise.all(all.map((s) => s.tryAcquire()));
    assert.equal(got.filter(Boolean).length, 4);
    await all[got.indexOf(true)].release();
    assert.equal(await all[got.indexOf(false)].tryAcquire(), true);
  },
  async 'several permits at once'() {
    const all = Array.from({ length: 3 }, () => new MultiSemaphore(redis, 'weights', 5, 2, ONCE));
    assert.deepEqual(await Promise.all(all.map((s) => s.tryAcquire())), [true, true, false]);
    assert.equal(await new Semaphore(redis, 'weights', 5, ONCE).tryAcquire(), true);
    assert.equal(await new Semaphore(redis, 'weights', 5, ONCE).tryAcquire(), false);
  },
  async 'Redlock'() {
    const first = new RedlockMutex([redis], 'red', ONCE);
    assert.equal(await first.tryAcquire(), true);
    assert.equal(await new RedlockMutex([redis], 'red', ONCE).tryAcquire(), false);
    await first.release();
    assert.equal(await new RedlockMutex([redis], 'red', ONCE).tryAcquire(), true);
  },
  async 'two processes share the permits'() {
    const [here, there] = await Promise.all([holders(redis, 6), elsewhere('holders')]);
    assert.equal(here.length + there, 6);
  },
});

async function main() {
  const redis = await connect('ioredis');
  if (task !== 'holders') return play('redis-semaphore', checks(redis));
  console.log(JSON.stringify((await holders(redis, 6)).length));
  process.exit(0);
}

main();
