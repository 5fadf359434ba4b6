// What to do when the limiter does not answer: decide without it, and soon.
//
// Reads lines "open" or "closed" and says for each whether a request may go ahead, who
// decided that, and after how many milliseconds. Needs ioredis. REDIS_URL says where the
// server is (redis://127.0.0.1:6379).
"use strict";

const readline = require("node:readline");
const { Redis, ReplyError } = require("ioredis");

function connect(url) {
  const redis = new Redis(url, {
    connectTimeout: 50,
    commandTimeout: 50, // of a call, and of its time in the queue while nobody is there
    socketTimeout: 50, // gives up a connection that does not answer
    maxRetriesPerRequest: 0, // the default tries 20 connections
    autoResendUnfulfilledCommands: false, // nobody waits for them any more
    retryStrategy: (attempt) => Math.min(attempt * 50, 500), // looks for it again
  });
  redis.on("error", () => {}); // each failed connection; allowed() has decided already
  return redis;
}

// How errors begin which say that no limit is decided now.
const AWAY = /^(UNAVAILABLE|LOADING|BUSY|MISCONF|NOREPLICAS|READONLY|MASTERDOWN)\b/;

// Returns whether key may go ahead, and whether the limiter has said so.
async function allowed(redis, key, failOpen) {
  try {
    const [limited] = await redis.call("CL.THROTTLE", key, 15, 30, 60);
    return { ok: limited === 0, answered: true };
  } catch (error) {
    if (error instanceof ReplyError && !AWAY.test(error.message)) {
      return { ok: false, answered: true }; // a client may have caused it by its key: log it
    }
    return { ok: failOpen, answered: false };
  }
}

async function main() {
  const redis = connect(process.env.REDIS_URL || "redis://127.0.0.1:6379");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const began = performance.now();
    const { ok, answered } = await allowed(redis, "away:node", line === "open");
    const took = Math.round(performance.now() - began);
    console.log(ok ? "allowed" : "refused", answered ? "answered" : "away", took);
  }
  redis.disconnect();
}

main();
