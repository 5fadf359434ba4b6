'use strict';
// Counts through failovers with the support of ioredis for Sentinel: node standby.js ioredis6
//
// What it reads from its environment and reports is said in ../README.md. A call is made
// once: ioredis would make it again by itself, and then nobody could say how often it ran.

const readline = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');

const name = process.argv[2];
const { Redis } = require(name);
const { version } = require(`${name}/package.json`);

// How many callers share the pace, each with one call at a time.
const CALLERS = 4;
// How long a call may take, and how long a caller waits after a failure, in milliseconds.
const CALL_WITHIN = 2000;
const AFTER_FAILURE = 20;

const client = new Redis({
  sentinels: process.env.CELL_SENTINELS.split(',').map((address) => {
    const [host, port] = address.split(':');
    return { host, port: Number(port) };
  }),
  name: process.env.CELL_MASTER,
  commandTimeout: CALL_WITHIN,
  connectTimeout: CALL_WITHIN,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  retryStrategy: () => 50,
  sentinelRetryStrategy: () => 50,
  // 1 asks for another connection, as the README of ioredis advises for a former primary.
  reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 1 : false),
});
client.on('error', (e) => console.error(`ioredis: ${e.message}`));

// Monotonic nanoseconds; a double keeps them to less than a microsecond for 50 days.
const now = () => Number(process.hrtime.bigint());
const hotCall = process.env.CELL_HOT.split(' ');
const done = { acked: 0, unknown: 0, refused: 0, hot: [], errors: {} };
let ending = false;
let last = now();
let longest = 0;
let mark = 0;

// neverRan tells whether a call has certainly not run. ioredis has not sent what it says
// that the stream is not writeable for.
function neverRan(error) {
  return /^(READONLY|LOADING|MASTERDOWN) |^Stream isn't writeable/.test(error.message);
}

function failed(error, hot) {
  const text = error.message.split(' ')[0];
  done.errors[text] = (done.errors[text] ?? 0) + 1;
  if (hot) return;
  if (neverRan(error)) done.refused++;
  else done.unknown++;
}

function answered(called, hot, reply) {
  const returned = now();
  longest = Math.max(longest, returned - last);
  last = returned;
  if (!hot) done.acked++;
  else if (reply[0] === 0) done.hot.push([called, returned]);
  if (mark !== 0 && called >= mark) {
    mark = 0;
    console.log('answered');
  }
}

async function once(hot) {
  const called = now();
  try {
    const reply = await (hot ? client.call(...hotCall) : client.incr(process.env.CELL_KEY));
    answered(called, hot, reply);
    return true;
  } catch (e) {
    failed(e, hot);
    return false;
  }
}

async function work(interval) {
  let due = performance.now();
  for (let made = 1; !ending; made++) {
    if (!(await once(made % 4 === 0))) await sleep(AFTER_FAILURE);
    // Calls that a failure kept from being made are not made later.
    due = Math.max(due + interval, performance.now() - interval);
    await sleep(Math.max(0, due - performance.now()));
  }
}

async function main() {
  const interval = (CALLERS * 1000) / Number(process.env.CELL_PACE);
  const callers = Array.from({ length: CALLERS }, () => work(interval));
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line === 'mark') mark = now();
  }
  ending = true;
  await Promise.all(callers);
  client.disconnect();
  console.log(JSON.stringify({ library: 'ioredis', version, longest_ms: longest / 1e6, ...done }));
}

main();
