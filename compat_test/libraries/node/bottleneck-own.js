'use strict';
// The tests that Bottleneck ships, with its data store: node bottleneck-own.js ioredis|redis
// They are written for mocha, of which they use little enough to be played here.

const path = require('node:path');
const { address, connect, say, version } = require('./report');
require('./bottleneck-address');

const print = console.log;

const kind = process.argv[2];
const FOLDER = path.join(__dirname, 'node_modules/bottleneck');
const FILES = ['cluster', 'general', 'group', kind === 'redis' ? 'node_redis' : 'ioredis', 'priority', 'promises', 'retries', 'states', 'stop'];

// The tests hold jobs to a few milliseconds, so on a busy machine one may fail many times in a
// row. It is run again, at least so often, until so many milliseconds have passed.
const ATTEMPTS = 8;
const PATIENCE = 60_000;
const TIMEOUT = 15_000;

// LEFT_OUT are the tests that need Redis Cluster; those that fail on Redis 7 as well,
// which puts "ERR " in front of the errors by which the library knows what to do; and
// one that needs the second of two limiters, which start together, to come first.
const LEFT_OUT = [
  /Redis Cluster mode/,
  /accept ioredis lib override/,
  /unresponsive clients with unexpired running jobs/,
  /clear unresponsive clients after last jobs are expired/,
  /clear previous settings/,
  /clear unresponsive clients$/,
  /not fail when Redis data is missing/,
  /not add jobs with a weight above the maxConcurrent/,
];

const tests = [];
let suite = { name: '', after: [] };
global.describe = (name, body) => {
  const outer = suite;
  suite = { name: `${outer.name}${name}: `, after: [...outer.after] };
  body();
  suite = outer;
};
global.it = (name, body) => {
  if (!LEFT_OUT.some((pattern) => pattern.test(name))) tests.push({ name: suite.name + name, body, after: suite.after });
};
global.afterEach = (body) => suite.after.push(body);

let fail = () => {};
process.on('uncaughtException', (e) => fail(e));
// Node ended no process for these when the tests were written: a client that is closed
// rejects what it had not sent.
process.on('unhandledRejection', (e) => console.error('unhandled', e));

// attempt runs one test and returns why it failed, if it did.
async function attempt({ body, after }) {
  const context = { timeout() {} };
  let timer;
  const failed = await new Promise((resolve) => {
    fail = (e) => resolve(e ?? new Error('rejected without a reason'));
    timer = setTimeout(() => fail(new Error('timed out')), TIMEOUT);
    const done = (e) => (e ? fail(e) : resolve());
    try {
      const promise = body.call(context, done);
      if (body.length === 0) Promise.resolve(promise).then(() => resolve(), fail);
    } catch (e) {
      fail(e);
    }
  });
  clearTimeout(timer);
  for (const each of after) await Promise.resolve().then(() => each.call(context)).catch(() => {});
  return failed;
}

async function main() {
  say(`info version ${version('bottleneck')}`);
  process.chdir(FOLDER);
  Object.assign(process.env, {
    DATASTORE: kind, REDIS_HOST: address.host, REDIS_PORT: String(address.port),
    NODE_OPTIONS: `--require ${JSON.stringify(path.join(__dirname, 'bottleneck-address.js'))}`,
  });
  console.log = console.error; // the tests print, too
  for (const file of FILES) require(path.join(FOLDER, 'test', `${file}.js`));
  const client = await connect('ioredis');
  let broken = false;
  for (const test of tests) {
    let failed;
    const began = Date.now();
    for (let i = 0; i < ATTEMPTS || Date.now() - began < PATIENCE; i++) {
      await client.flushall();
      failed = await attempt(test);
      if (!failed) break;
      console.error(`attempt ${i + 1} of ${test.name}:`, failed);
    }
    broken ||= Boolean(failed);
    print(failed ? `FAIL ${test.name}: ${failed.message.replaceAll('\n', ' ')}` : `ok ${test.name}`);
  }
  process.exit(broken ? 1 : 0);
}

main();
