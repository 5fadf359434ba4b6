'use strict';
// The checks that every Node client has to pass, and how they are reported:
// one line per check on standard output (see ../README.md).
//
// An adapter has call(...args), pipeline(commands) -> replies or errors,
// isReplyError(e) (the client's normal type for an error reply) and close().

const assert = require('node:assert/strict');
const readline = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');

// A key with a NUL, a line end and bytes that are not UTF-8.
const BINARY_KEY = Buffer.from([0x00, 0xff, 0x0d, 0x0a, 0x80, 0x20, 0x6b]);
const USAGE = 'Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]';
const FRESH = [0, 16, 15, -1, 2];
// How long a client may take to find a restarted server, in milliseconds.
const RECONNECT_WITHIN = 20_000;

const say = (line) => console.log(line.replaceAll('\r', '\\r').replaceAll('\n', '\\n'));

function isErrorWith(adapter, got, ...parts) {
  assert.ok(adapter.isReplyError(got), `got ${got}, want the client's type of an error reply`);
  for (const part of parts) {
    assert.ok(got.message.includes(part), `the error text ${JSON.stringify(got.message)} lacks ${part}`);
  }
}

// fails runs a command that has to fail and returns what it was rejected with.
async function fails(adapter, ...args) {
  let got;
  try {
    got = await adapter.call(...args);
  } catch (e) {
    return e;
  }
  return assert.fail(`got ${JSON.stringify(got)}, want an error`);
}

async function oddKey(adapter, key) {
  assert.deepEqual(await adapter.call('CL.THROTTLE', key, '15', '30', '60'), FRESH);
  assert.deepEqual((await adapter.call('CL.THROTTLE', key, '15', '30', '60')).slice(0, 3), [0, 16, 14]);
  assert.equal(await adapter.call('DEL', key), 1, 'DEL did not find the key');
  assert.deepEqual(await adapter.call('CL.THROTTLE', key, '15', '30', '60'), FRESH);
}

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function reconnect(adapter) {
  say('RESTART');
  assert.equal((await lines.next()).value, 'RESTARTED', 'the parent did not restart the server');
  const deadline = Date.now() + RECONNECT_WITHIN;
  for (;;) {
    try {
      assert.deepEqual(await adapter.call('CL.THROTTLE', 'reconnect', '15', '30', '60'), FRESH);
      return;
    } catch (e) {
      // The client learns of the broken connection by using it.
      const final = e instanceof assert.AssertionError || adapter.isReplyError(e);
      if (final || Date.now() > deadline) throw e;
      await sleep(50);
    }
  }
}

const CHECKS = {
  async connect(adapter) {
    assert.equal(await adapter.call('PING'), 'PONG');
  },
  async 'throttle-allowed'(adapter) {
    assert.deepEqual(await adapter.call('CL.THROTTLE', 'allowed', '15', '30', '60'), FRESH);
    assert.deepEqual((await adapter.call('CL.THROTTLE', 'allowed', '15', '30', '60', '2')).slice(0, 3), [0, 16, 13]);
  },
  async 'throttle-denied'(adapter) {
    assert.deepEqual(await adapter.call('CL.THROTTLE', 'denied', '0', '1', '3600'), [0, 1, 0, -1, 3600]);
    const got = await adapter.call('CL.THROTTLE', 'denied', '0', '1', '3600');
    assert.deepEqual(got.slice(0, 3), [1, 1, 0]);
    assert.ok(got[3] >= 3500 && got[3] <= 3600, `got ${got}, want a retry in about an hour`);
    assert.equal(got[3], got[4]);
  },
  async 'pipeline-100'(adapter) {
    const commands = Array.from({ length: 100 }, () => ['CL.THROTTLE', 'pipeline', '99', '100', '3600']);
    const replies = await adapter.pipeline(commands);
    assert.deepEqual(replies.map((r) => r.slice(0, 3)), commands.map((_, i) => [0, 100, 99 - i]));
  },
  async 'error-usage'(adapter) {
    const got = await fails(adapter, 'CL.THROTTLE', 'key-only');
    isErrorWith(adapter, got, 'Cell error: ', USAGE);
    assert.ok(got.message.startsWith('Cell error: '), got.message);
  },
  async 'error-argument'(adapter) {
    const got = await fails(adapter, 'CL.THROTTLE', 'key', 'many', '30', '60');
    isErrorWith(adapter, got, 'Cell error: ', "Couldn't parse as integer: many");
  },
  async 'error-unknown-command'(adapter) {
    const got = await fails(adapter, 'CL.NOSUCH', 'a', 'b');
    isErrorWith(adapter, got, "unknown command 'CL.NOSUCH', with args beginning with: 'a' 'b'");
    assert.equal(await adapter.call('PING'), 'PONG');
  },
  async 'error-in-pipeline'(adapter) {
    const good = ['CL.THROTTLE', 'error-in-pipeline', '15', '30', '60'];
    const replies = await adapter.pipeline([good, ['CL.THROTTLE', 'key-only'], good]);
    assert.deepEqual(replies[0], FRESH);
    isErrorWith(adapter, replies[1], 'Cell error: ', USAGE);
    assert.deepEqual(replies[2].slice(0, 3), [0, 16, 14]);
  },
  'binary-key': (adapter) => oddKey(adapter, BINARY_KEY),
  'empty-key': (adapter) => oddKey(adapter, ''),
  reconnect,
};

// run does every check in order and ends the process with the exit code.
async function run(adapter) {
  let failed = false;
  for (const [name, check] of Object.entries(CHECKS)) {
    try {
      await check(adapter);
      say(`ok ${name}`);
    } catch (e) {
      failed = true;
      say(`FAIL ${name}: ${e.name}: ${e.message}`);
    }
  }
  const info = String(await adapter.call('CLIENT', 'INFO'));
  say(`info resp ${/\bresp=(\d)/.exec(info)?.[1]}`);
  await adapter.close();
  process.exit(failed ? 1 : 0);
}

// address and protocol are what the parent asks for; protocol is undefined
// when the client's default is wanted.
const [, host, port] = /^(.*):(\d+)$/.exec(process.env.CELL_ADDR ?? '') ?? assert.fail('CELL_ADDR must be host:port');
const protocol = process.env.CELL_RESP ? Number(process.env.CELL_RESP) : undefined;

// version reads the version of an installed package, whatever it exports.
function version(name) {
  const file = require('node:path').join(__dirname, 'node_modules', name, 'package.json');
  return JSON.parse(require('node:fs').readFileSync(file, 'utf8')).version;
}

module.exports = { run, say, version, host, port: Number(port), protocol };
