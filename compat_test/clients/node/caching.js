// Drives the cache of node-redis: node caching.js MODULE. What it reports is said in the
// README of the clients.
'use strict';

const moduleName = process.argv[2];
const { createClient } = require(moduleName);
const { version } = require(`${moduleName}/package.json`);

// How long an invalidation may take on its way.
const patience = 5000;

async function main() {
  const [host, port] = process.env.CELL_ADDR.split(/:(?=\d+$)/);
  const socket = { host, port: Number(port) };
  const reader = createClient({ socket, RESP: 3, clientSideCache: { ttl: 0, maxEntries: 0, evictPolicy: 'LRU' } });
  const writer = createClient({ socket });
  const others = createClient({ socket });
  await Promise.all([reader, writer, others].map((c) => c.on('error', () => {}).connect()));
  console.log('info library node-redis');
  console.log(`info version ${version}`);

  let over = false;
  const noise = (async () => {
    for (let i = 0; !over; i++) await others.set(`noise:${i % 4}`, `${i}`);
  })();

  const rounds = Number(process.env.CELL_ROUNDS);
  let stale = 0;
  let hits = 0;
  for (let i = 0; i < rounds && stale < 3; i++) {
    const key = `cached:${i % 8}`;
    const before = await reader.get(key);
    if ((await reader.get(key)) === before) hits++;
    await reader.get(`noise:${i % 4}`);
    await writer.set(key, `${i}`);
    const end = Date.now() + patience;
    while ((await reader.get(key)) !== `${i}`) {
      if (Date.now() > end) {
        stale++;
        break;
      }
      await new Promise(setImmediate);
    }
  }
  over = true;
  await noise;
  const ok = stale === 0 && hits > 0;
  console.log(ok ? 'ok never-stale' : `FAIL never-stale: ${stale} stale, ${hits} kept`);
  process.exit(ok ? 0 : 1);
}

main();
