// Compares the CPU time that a request takes in a server: without a limiter, with a plain client, with this package, and with the
// packages that are used most, on redis-server.
//
//     CELL_SERVER_CMD=/path/of/cellserver npm run bench -- [rounds] [requests of a round] [express or fastify]
//
// Each server is a process of its own, asked by 32 connections. The rounds take turns. The medians count, less the median of the
// server without a limiter, and on a machine with other work the least times tell more.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const self = fileURLToPath(import.meta.url)
const connections = 32

const makers = {
  async express(limiter) {
    const { default: express } = await import('express')
    const app = express()
    if (limiter) app.use(limiter)
    app.get('/', (_req, res) => res.send('hello'))
    return new Promise((resolve) => { const server = app.listen(0, '127.0.0.1', () => resolve(server.address().port)) })
  },
  async fastify(plugin, options) {
    const { default: fastify } = await import('fastify')
    const app = fastify()
    if (plugin) await app.register(plugin, options)
    app.get('/', async () => 'hello')
    await app.listen({ port: 0, host: '127.0.0.1' })
    return app.server.address().port
  },
}

async function plain(socket) {
  const { Redis } = await import('ioredis')
  const redis = new Redis(socket, { enableAutoPipelining: true })
  return (key) => redis.call('RL.USE', 'api', key, '1', 'MS', 'WITHDETAILS')
}

// fieldsOf returns the values of the header fields that this package writes, which a plain client has to write too.
function fieldsOf([, [[, limit, remaining, , reset]]]) {
  return [`"api";q=${limit};w=60`, `"api";r=${remaining};t=${Math.ceil(reset / 1000)}`]
}

const options = async (socket) => {
  const { ip } = await import('../dist/esm/index.js')
  return { url: socket, policy: 'api', key: ip(), onUnavailable: 'allow', deadlineMs: 1000, denialCacheMs: 0 }
}

const servers = {
  'express: none': () => makers.express(),
  'express: plain ioredis': async (cell) => {
    const use = await plain(cell)
    return makers.express((req, res, next) => use(req.socket.remoteAddress).then((reply) => {
      const [policies, limits] = fieldsOf(reply)
      res.setHeader('RateLimit-Policy', policies)
      res.setHeader('RateLimit', limits)
      return reply[0][0] ? res.status(429).end() : next()
    }, next))
  },
  'express: this package': async (cell) => {
    const { cellserver } = await import('../dist/esm/express.js')
    return makers.express(cellserver(await options(cell)))
  },
  'express: express-rate-limit + rate-limit-redis': async (_cell, redisSocket) => {
    const { rateLimit } = await import('express-rate-limit')
    const { RedisStore } = await import('rate-limit-redis')
    const { Redis } = await import('ioredis')
    const redis = new Redis(redisSocket)
    return makers.express(rateLimit({ windowMs: 60_000, limit: 1e9, standardHeaders: 'draft-8', legacyHeaders: false, store: new RedisStore({ sendCommand: (command, ...args) => redis.call(command, ...args) }) }))
  },
  'fastify: none': () => makers.fastify(),
  'fastify: plain ioredis': async (cell) => {
    const use = await plain(cell)
    return makers.fastify(Object.assign(async (app) => app.addHook('onRequest', async (request, reply) => {
      const answer = await use(request.ip)
      const [policies, limits] = fieldsOf(answer)
      reply.header('RateLimit-Policy', policies)
      reply.header('RateLimit', limits)
      if (answer[0][0]) return reply.code(429).send()
    }), { [Symbol.for('skip-override')]: true }))
  },
  'fastify: this package': async (cell) => {
    const { cellserver } = await import('../dist/esm/fastify.js')
    return makers.fastify(cellserver, await options(cell))
  },
  'fastify: @fastify/rate-limit': async (_cell, redisSocket) => {
    const { default: rateLimit } = await import('@fastify/rate-limit')
    const { Redis } = await import('ioredis')
    return makers.fastify(rateLimit, { max: 1e9, timeWindow: 60_000, redis: new Redis(redisSocket) })
  },
}

if (process.argv[2] === 'serve') {
  const port = await servers[process.argv[3]](process.argv[4], process.argv[5])
  process.on('message', () => process.send(process.cpuUsage()))
  process.on('SIGINT', () => process.exit())
  process.send(port)
} else {
  await compare(Number(process.argv[2] ?? 9), Number(process.argv[3] ?? 3000), process.argv[4] ?? '')
}

async function listening(command, socket, ...args) {
  const child = spawn(command, args, { stdio: 'ignore' })
  while (!existsSync(socket)) await new Promise((resolve) => setTimeout(resolve, 10))
  return child
}

async function load(port, requests) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  let left = requests
  const caller = async () => {
    while (left-- > 0) {
      await new Promise((resolve, reject) => {
        get({ port, host: '127.0.0.1', agent }, (response) => {
          if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`))
          response.on('end', resolve).resume()
        }).on('error', reject)
      })
    }
  }
  await Promise.all(Array.from({ length: connections }, caller))
  agent.destroy()
}

async function compare(rounds, requests, framework) {
  const dir = mkdtempSync(join(tmpdir(), 'bench-'))
  const [cell, redis] = [join(dir, 'cell'), join(dir, 'redis')]
  const server = (process.env.CELL_SERVER_CMD ?? 'cellserver').split(' ')
  const children = [
    await listening(server[0], cell, ...server.slice(1), '--port', '0', '--unixsocket', cell, '--dir', dir, '--appendonly', 'no'),
    await listening('redis-server', redis, '--port', '0', '--unixsocket', redis, '--dir', dir, '--save', '', '--appendonly', 'no'),
  ]
  try {
    const { Redis } = await import('ioredis')
    const client = new Redis(cell)
    await client.call('RL.POLICY', 'SET', 'api', 'LIMITS', 'SW', '1000000000', '60', 'FIXED')
    client.disconnect()
    const measured = new Map()
    for (const name of Object.keys(servers).filter((name) => name.startsWith(framework))) {
      const child = fork(self, ['serve', name, cell, redis])
      children.push(child)
      const [port] = await once(child, 'message')
      await load(port, 2 * requests) // until the code is compiled
      measured.set(name, { child, port, times: [] })
    }
    const cpu = async (child) => {
      child.send('cpu')
      const [usage] = await once(child, 'message')
      return usage.user + usage.system
    }
    for (let round = 0; round < rounds; round++) {
      for (const server of measured.values()) {
        const before = await cpu(server.child)
        await load(server.port, requests)
        server.times.push((await cpu(server.child) - before) / requests)
      }
    }
    const sorted = (name) => measured.get(name).times.sort((a, b) => a - b)
    for (const name of measured.keys()) {
      const none = sorted(`${name.split(':')[0]}: none`)
      const columns = [rounds >> 1, 0].flatMap((i) => [sorted(name)[i], sorted(name)[i] - none[i]])
      const [median, added, least, addedToLeast] = columns.map((us) => us.toFixed(1).padStart(7))
      console.log(`${name.padEnd(48)} ${median} us, added ${added} us; least ${least} us, added ${addedToLeast} us`)
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  }
}
