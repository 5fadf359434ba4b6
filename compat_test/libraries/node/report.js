'use strict';
// What the programs of this folder share: how they reach the server, how they report
// (see ../README.md), and how they ask a second process.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { setTimeout: sleep } = require('node:timers/promises');

const [, host, port] = /^(.*):(\d+)$/.exec(process.env.CELL_ADDR ?? '') ?? assert.fail('CELL_ADDR must be host:port');
const address = { host, port: Number(port) };

const say = (line) => console.log(line.replaceAll('\r', '\\r').replaceAll('\n', '\\n'));

// version is that of an installed package, whatever it exports.
function version(name) {
  const file = path.join(__dirname, 'node_modules', name, 'package.json');
  return JSON.parse(fs.readFileSync(file, 'utf8')).version;
}

// connect returns a connected client of the kind named: ioredis or redis (node-redis).
async function connect(kind) {
  if (kind === 'ioredis') {
    const { Redis } = require('ioredis');
    const client = new Redis(address.port, address.host);
    await client.ping();
    return client;
  }
  const client = require('redis').createClient({ socket: address });
  client.on('error', (e) => console.error(`redis: ${e.message}`));
  return client.connect();
}

// outcomes waits for all and tells those that were fulfilled from those rejected.
async function outcomes(promises) {
  const settled = await Promise.allSettled(promises);
  return {
    passed: settled.filter((s) => s.status === 'fulfilled').map((s) => s.value),
    refused: settled.filter((s) => s.status === 'rejected').map((s) => s.reason),
  };
}

// elsewhere runs this program once more, as another process with these arguments, and
// returns what it prints, which is JSON.
async function elsewhere(...args) {
  const { stdout } = await promisify(execFile)(process.execPath, [process.argv[1], ...args.map(String)]);
  return JSON.parse(stdout);
}

// windowStart waits until a window of that many milliseconds of the wall clock has
// just begun, so that what follows falls into one of them.
async function windowStart(ms) {
  await sleep(ms - (Date.now() % ms) + 5);
}

// between holds a time to wait to what can be true of it.
function between(got, low, high, what) {
  assert.ok(got >= low && got <= high, `${what} is ${got}, want ${low} to ${high}`);
}

// play runs the checks in order and ends the process with the exit code.
async function play(library, checks) {
  say(`info version ${version(library)}`);
  let failed = false;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      say(`ok ${name}`);
    } catch (e) {
      failed = true;
      say(`FAIL ${name}: ${e?.message ?? e}`);
      console.error(name, e);
    }
  }
  process.exit(failed ? 1 : 0);
}

module.exports = { address, assert, between, connect, elsewhere, outcomes, play, say, sleep, version, windowStart };
