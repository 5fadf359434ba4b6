'use strict';
// Bottleneck in its clustering mode: node bottleneck.js ioredis|redis
// Its data store "redis" is written for node-redis 2 and 3.

const Bottleneck = require('bottleneck');
const { address, assert, connect, elsewhere, play, sleep } = require('./report');

const [kind, task, ...rest] = process.argv.slice(2);

const store = {
  datastore: kind,
  clearDatastore: false,
  clientOptions: address,
  Redis: kind === 'redis' ? require('redis3') : require('ioredis').Redis,
};

const limiters = [];

async function limiter(options) {
  const made = new Bottleneck({ ...store, ...options });
  made.on('error', (e) => console.error(e));
  limiters.push(made);
  await made.ready();
  return made;
}

// schedule runs n jobs and returns the instants at which they started.
async function schedule(limit, n) {
  const starts = [];
  await Promise.all(Array.from({ length: n }, () => limit.schedule(async () => { starts.push(Date.now()); })));
  return starts.sort((a, b) => a - b);
}

const DROP = { highWater: 0, strategy: Bottleneck.strategy.OVERFLOW };

// offer runs n jobs at once on a limiter that drops what cannot start at once.
async function offer(limit, n) {
  const settled = await Promise.allSettled(Array.from({ length: n }, () => limit.schedule(async () => 1)));
  for (const { reason } of settled) assert.ok(!reason || reason instanceof Bottleneck.BottleneckError, String(reason));
  return settled.filter((s) => s.status === 'fulfilled').length;
}

const checks = () => ({
  async 'a reservoir admits exactly what it holds'() {
    const limit = await limiter({ id: 'reservoir', reservoir: 5, ...DROP });
    assert.equal(await offer(limit, 20), 5);
    assert.equal(await limit.currentReservoir(), 0);
    assert.equal(await limit.incrementReservoir(2), 2);
    assert.equal(await offer(limit, 20), 2);
    assert.equal(await limit.check(), false);
    assert.equal(await limit.check(0), true);
  },
  async 'a reservoir is filled again'() {
    const limit = await limiter({
      id: 'refresh', reservoir: 2, reservoirRefreshAmount: 2, reservoirRefreshInterval: 1500,
      heartbeatInterval: 250,
    });
    const starts = await schedule(limit, 5);
    assert.ok(starts[4] - starts[0] > 1400, `five jobs in ${starts[4] - starts[0]} ms`);
  },
  async minTime() {
    const limit = await limiter({ id: 'mintime', minTime: 200 });
    const starts = await schedule(limit, 6);
    assert.ok(starts[5] - starts[0] >= 950, `six jobs in ${starts[5] - starts[0]} ms`);
  },
  async 'maxConcurrent across two limiters'() {
    const both = [await limiter({ id: 'concurrent', maxConcurrent: 3 }), await limiter({ id: 'concurrent', maxConcurrent: 3 })];
    let running = 0;
    let most = 0;
    let fill;
    const full = new Promise((resolve) => { fill = resolve; });
    await Promise.all(Array.from({ length: 20 }, (_, i) => both[i % 2].schedule(async () => {
      most = Math.max(most, ++running);
      // On a busy machine 30 ms may pass before the event loop has started the third.
      if (most === 3) fill();
      await full;
      await sleep(30);
      running--;
    })));
    assert.equal(most, 3);
    assert.equal(await both[0].running(), 0);
    assert.equal(await both[1].done(), 20);
  },
  async 'two processes share a reservoir'() {
    const limit = await limiter({ id: 'shared', reservoir: 30, ...DROP });
    const [here, there] = await Promise.all([offer(limit, 30), elsewhere(kind, 'offer', 30)]);
    assert.equal(here + there, 30);
  },
  async 'weights and expiration'() {
    const limit = await limiter({ id: 'weights', maxConcurrent: 4 });
    const stuck = limit.schedule({ weight: 4, expiration: 300 }, () => sleep(60_000, undefined, { ref: false }));
    const next = limit.schedule({ weight: 1 }, async () => 'next');
    await assert.rejects(stuck, /timed out after 300 ms/);
    assert.equal(await next, 'next');
    // Redis 7 puts "ERR " in front of it, and the library passes it on as it is.
    await assert.rejects(limit.schedule({ weight: 5 }, async () => 1), /OVERWEIGHT:5:4/);
  },
  async 'settings reach the other limiters'() {
    const one = await limiter({ id: 'settings', reservoir: 0 });
    const two = await limiter({ id: 'settings', reservoir: 0 });
    const waiting = schedule(two, 3);
    await one.updateSettings({ reservoir: 3 });
    assert.equal((await waiting).length, 3);
    assert.equal(await one.currentReservoir(), 0);
  },
  async 'messages to all limiters'() {
    const one = await limiter({ id: 'messages' });
    const two = await limiter({ id: 'messages' });
    const got = Promise.all([one, two].map((l) => new Promise((resolve) => { l.on('message', resolve); })));
    await one.publish('hello');
    assert.deepEqual(await got, ['hello', 'hello']);
  },
  async 'a group has a limit for each key'() {
    const group = new Bottleneck.Group({ ...store, id: 'group', reservoir: 2, ...DROP });
    const counts = await Promise.all(['ann', 'bob'].map((key) => offer(group.key(key), 5)));
    assert.deepEqual(counts, [2, 2]);
    assert.deepEqual((await group.clusterKeys()).sort(), ['ann', 'bob']);
    assert.equal(await group.deleteKey('ann'), true);
    assert.equal(await offer(group.key('ann'), 5), 2);
    await group.disconnect(false);
  },
  async 'the keys of a limiter expire'() {
    const limit = await limiter({ id: 'idle', reservoir: 1, timeout: 60_000 });
    await schedule(limit, 1);
    const client = await connect('ioredis');
    const ttl = await client.pttl('b_idle_settings');
    assert.ok(ttl > 0 && ttl <= 60_000, `the ttl is ${ttl}`);
    client.disconnect();
  },
});

async function main() {
  if (task === 'offer') {
    const limit = await limiter({ id: 'shared', reservoir: 30, ...DROP });
    console.log(await offer(limit, Number(rest[0])));
    process.exit(0);
  }
  await play('bottleneck', checks());
}

main();
