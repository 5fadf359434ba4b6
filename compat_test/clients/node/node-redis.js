'use strict';
// Drives node-redis: node node-redis.js redis4|redis6

const { run, say, version, host, port, protocol } = require('./checks');

const name = process.argv[2];
const { createClient, ErrorReply } = require(name);
say(`info version ${version(name)}`);

async function main() {
  const url = `redis://${host}:${port}`;
  const client = createClient(protocol ? { url, RESP: protocol } : { url });
  // While the server is away node-redis tells it here, and tries again by itself.
  client.on('error', (e) => console.error(`node-redis: ${e.message}`));
  await client.connect();
  await run({
    call: (...args) => client.sendCommand(args),
    async pipeline(commands) {
      // Commands sent in one turn of the event loop leave as one pipeline.
      const sent = await Promise.allSettled(commands.map((args) => client.sendCommand(args)));
      return sent.map(({ value, reason }) => reason ?? value);
    },
    isReplyError: (e) => e instanceof ErrorReply,
    close: () => (client.close ?? client.quit).call(client),
  });
}

main().catch((e) => {
  say(`FAIL connect: ${e.name}: ${e.message}`);
  process.exit(1);
});
