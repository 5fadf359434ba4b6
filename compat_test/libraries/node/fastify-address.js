'use strict';
// Loaded before the tests of @fastify/rate-limit: their clients, which are made for the
// port that Redis usually has, get ours.

const Module = require('node:module');
const [, host, port] = /^(.*):(\d+)$/.exec(process.env.CELL_ADDR);
const load = Module._load;

Module._load = function (name, ...rest) {
  const loaded = load.call(this, name, ...rest);
  if (name !== 'ioredis') return loaded;
  return class extends loaded.Redis {
    constructor(options) {
      super({ ...options, host, port: Number(port) });
    }
  };
};
