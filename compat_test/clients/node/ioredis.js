'use strict';
// Drives ioredis: node ioredis.js ioredis5|ioredis6

const { run, say, version, host, port, protocol } = require('./checks');

const name = process.argv[2];
const { Redis, ReplyError } = require(name);
say(`info version ${version(name)}`);

const client = protocol ? new Redis(port, host, { protocol }) : new Redis(port, host);
// While the server is away ioredis tells it here, and tries again by itself.
client.on('error', (e) => console.error(`ioredis: ${e.message}`));

run({
  call: (command, ...args) => client.call(command, ...args),
  async pipeline(commands) {
    const pipe = client.pipeline();
    for (const args of commands) pipe.call(...args);
    return (await pipe.exec()).map(([error, reply]) => error ?? reply);
  },
  isReplyError: (e) => e instanceof ReplyError,
  close: () => client.quit(),
});
