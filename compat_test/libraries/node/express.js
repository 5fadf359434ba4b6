'use strict';
// express-rate-limit with rate-limit-redis behind a real HTTP server:
// node express.js ioredis|redis

const express = require('express');
const { rateLimit } = require('express-rate-limit');
const { RedisStore } = require('rate-limit-redis');
const { assert, between, connect, elsewhere, play, sleep, version } = require('./report');

const [kind, task, ...rest] = process.argv.slice(2);
const HOUR = 3_600_000;

// sender is how the documentation of rate-limit-redis hands over either client.
const sender = (client) => (kind === 'ioredis'
  ? (command, ...args) => client.call(command, ...args)
  : (...args) => client.sendCommand(args));

// serve starts a server with one limit and returns its address, store and end.
async function serve(client, prefix, options) {
  const store = new RedisStore({ sendCommand: sender(client), prefix });
  const app = express();
  app.use(rateLimit({
    windowMs: HOUR, standardHeaders: 'draft-8', legacyHeaders: true, store, validate: false,
    keyGenerator: (req) => req.get('x-user') ?? 'nobody', ...options,
  }));
  app.get('/', (req, res) => res.status(req.get('x-fail') ? 500 : 200).send('done'));
  // Express tells an error by its status; the stack is not wanted on the terminal.
  app.use((error, req, res, next) => { res.status(503).send(error.message); void next; });
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => { server.once('listening', resolve); });
  return { url: `http://127.0.0.1:${server.address().port}/`, store, end: () => server.close() };
}

const get = (url, user, headers = {}) => fetch(url, { headers: { 'x-user': user, ...headers } });

// statuses counts the answers to n requests at once.
async function statuses(url, user, n) {
  const all = await Promise.all(Array.from({ length: n }, () => get(url, user)));
  const count = { 200: 0, 429: 0 };
  for (const { status } of all) count[status] = (count[status] ?? 0) + 1;
  return count;
}

const checks = (client) => ({
  async 'admits exactly the limit'() {
    const { url, end } = await serve(client, 'exact:', { limit: 3 });
    for (let left = 2; left >= 0; left--) {
      const answer = await get(url, 'ann');
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('x-ratelimit-remaining'), String(left));
    }
    const refused = await get(url, 'ann');
    assert.equal(refused.status, 429);
    between(Number(refused.headers.get('retry-after')), 3500, 3600, 'Retry-After');
    assert.match(refused.headers.get('ratelimit'), /r=0; t=3[56]\d\d/);
    assert.equal((await get(url, 'bob')).status, 200);
    end();
  },
  async 'opens again'() {
    const { url, end } = await serve(client, 'reopen:', { limit: 1, windowMs: 2000 });
    assert.equal((await get(url, 'ann')).status, 200);
    assert.equal((await get(url, 'ann')).status, 429);
    await sleep(2200);
    assert.equal((await get(url, 'ann')).status, 200);
    end();
  },
  async 'parallel requests'() {
    const { url, end } = await serve(client, 'parallel:', { limit: 20 });
    assert.deepEqual(await statuses(url, 'ann', 60), { 200: 20, 429: 40 });
    end();
  },
  async 'two processes share a limit'() {
    const { url, end } = await serve(client, 'shared:', { limit: 20 });
    const [here, there] = await Promise.all([statuses(url, 'ann', 20), elsewhere(kind, 'serve', 20)]);
    assert.equal(here[200] + there[200], 20);
    end();
  },
  async 'reset and get'() {
    const { url, store, end } = await serve(client, 'reset:', { limit: 1 });
    await get(url, 'ann');
    const { totalHits, resetTime } = await store.get('ann');
    assert.equal(totalHits, 1);
    between(resetTime - Date.now(), HOUR - 60_000, HOUR + 1000, 'the time until the reset');
    assert.equal((await get(url, 'ann')).status, 429);
    await store.resetKey('ann');
    assert.equal((await get(url, 'ann')).status, 200);
    end();
  },
  async 'failed requests are given back'() {
    const { url, store, end } = await serve(client, 'failed:', { limit: 2, skipFailedRequests: true });
    for (let i = 0; i < 4; i++) {
      assert.equal((await get(url, 'ann', { 'x-fail': '1' })).status, 500);
      // The store is told after the answer has left.
      while ((await store.get('ann')).totalHits > 0) await sleep(5);
    }
    assert.equal((await get(url, 'ann')).status, 200);
    end();
  },
  async 'scripts are loaded again after SCRIPT FLUSH'() {
    const { url, store, end } = await serve(client, 'flushed:', { limit: 3 });
    await get(url, 'ann');
    await sender(client)('SCRIPT', 'FLUSH');
    assert.equal((await get(url, 'ann')).headers.get('x-ratelimit-remaining'), '1');
    await sender(client)('SCRIPT', 'FLUSH');
    assert.equal((await store.get('ann')).totalHits, 2);
    end();
  },
  async 'an error of the server'() {
    const { url, end } = await serve(client, 'wrong:', { limit: 3 });
    await sender(client)('RPUSH', 'wrong:ann', 'x');
    await sender(client)('PEXPIRE', 'wrong:ann', '60000');
    const answer = await get(url, 'ann');
    assert.equal(answer.status, 503);
    assert.match(await answer.text(), /WRONGTYPE/);
    const open = await serve(client, 'wrong:', { limit: 3, passOnStoreError: true });
    assert.equal((await get(open.url, 'ann')).status, 200);
    open.end();
    end();
  },
});

async function main() {
  const client = await connect(kind);
  if (task === 'serve') {
    const { url } = await serve(client, 'shared:', { limit: 20 });
    console.log(JSON.stringify(await statuses(url, 'ann', Number(rest[0]))));
    process.exit(0);
  }
  console.error(`express-rate-limit ${version('express-rate-limit')}, express ${version('express')}`);
  await play('rate-limit-redis', checks(client));
}

main();
