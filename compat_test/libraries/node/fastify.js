'use strict';
// The tests that @fastify/rate-limit ships for its Redis store. They expect the server at
// 127.0.0.1:6379, so a client made for it is sent to ours.

const { run } = require('node:test');
const path = require('node:path');
const { say, version } = require('./report');

const FILE = path.join(__dirname, 'node_modules/@fastify/rate-limit/test/redis-rate-limit.test.js');
// Some of the tests hold replies to windows of a second. One that fails because the
// machine was away for that long passes when it is run again.
const ATTEMPTS = 3;
// How long one attempt may take, in milliseconds; ten seconds are usual. A test that fails
// leaves its connections open, and then the file does not end by itself.
const TIMEOUT = 60_000;

// attempt plays the file and returns what each test came to: undefined, or why it failed.
async function attempt() {
  const results = new Map();
  process.env.NODE_OPTIONS = `--require ${JSON.stringify(path.join(__dirname, 'fastify-address.js'))}`;
  const group = [];
  for await (const { type, data } of run({ files: [FILE], concurrency: 1, timeout: TIMEOUT })) {
    if (type === 'test:start') group[data.nesting] = data.name;
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.details.type === 'suite' || data.nesting === 0) continue;
    const error = data.details.error;
    results.set(`${group[data.nesting - 1]}: ${data.name}`, error && `${error.cause?.message ?? error.message}`);
  }
  return results;
}

async function main() {
  say(`info version ${version('@fastify/rate-limit')}`);
  let results = await attempt();
  for (let i = 1; i < ATTEMPTS && [...results.values()].some(Boolean); i++) {
    for (const [name, why] of await attempt()) {
      if (!results.has(name) || results.get(name)) results.set(name, why);
    }
  }
  for (const [name, why] of results) say(why ? `FAIL ${name}: ${why}` : `ok ${name}`);
  process.exit([...results.values()].some(Boolean) || results.size === 0 ? 1 : 0);
}

main();
