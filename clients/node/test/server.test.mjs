// Against a real server: CELL_SERVER_CMD is the command that starts one. Without it these tests are skipped, and fail if CI is
// set.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { test as run } from 'node:test'
import { createClient } from 'redis'
import { Redis } from 'ioredis'
import { Limiter } from '../dist/esm/index.js'
import { CellserverStore } from '../dist/esm/express-rate-limit.js'
import { CellserverStorage } from '../dist/esm/nest.js'
import { rateLimitStore } from '../dist/esm/fastify.js'
import { FakeLimiter } from '../dist/esm/testing.js'

const [program, ...words] = (process.env.CELL_SERVER_CMD ?? '').split(' ')
const skip = program || process.env.CI ? false : 'SKIP: CELL_SERVER_CMD does not name a server'
const test = (name, body) => run(name, { skip, timeout: 60_000 }, body)
const quiet = { warn() {}, error() {} }

// A Server is a process that listens on a Unix socket.
class Server {
  constructor(t) {
    this.dir = mkdtempSync(join(tmpdir(), 'cellserver-'))
    this.socket = join(this.dir, 's')
    t.after(async () => {
      await this.stop()
      rmSync(this.dir, { recursive: true })
    })
  }

  async start(...options) {
    this.process = spawn(program, [...words, '--port', '0', '--unixsocket', this.socket, '--dir', this.dir, '--appendonly', 'no', ...options], { stdio: 'ignore' })
    this.ended = once(this.process, 'exit')
    await until(() => existsSync(this.socket))
    return this
  }

  async stop(signal = 'SIGKILL') {
    if (this.process === undefined) return
    this.process.kill('SIGCONT')
    this.process.kill(signal)
    await this.ended
    this.process = undefined
    rmSync(this.socket, { force: true })
  }

  limiter(t, options) {
    const limiter = new Limiter({ url: this.socket, deadlineMs: 1000, log: quiet, ...options })
    t.after(() => limiter.close())
    return limiter
  }

  async command(...words) {
    const redis = new Redis(this.socket)
    try {
      return await redis.call(...words)
    } finally {
      redis.disconnect()
    }
  }
}

async function until(condition) {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('a policy, its fields, and a denial', async (t) => {
  const server = await new Server(t).start()
  await server.command('RL.POLICY', 'SET', 'api', 'LIMITS', 'TB', '2', '1', '1h', 'SW', '10', '1d', 'FIXED')
  const limiter = server.limiter(t, { policy: 'api', onUnavailable: 'deny' })
  await limiter.ready()
  const results = []
  for (let i = 0; i < 3; i++) results.push(await limiter.check('k'))
  assert.deepEqual(results.map((r) => r.allowed), [true, true, false])
  assert.equal(limiter.headers(results[0])[0][1], '"api";q=2, "api#2";q=10;w=86400')
  assert.equal((await limiter.check('k')).source, 'cache')
})

test('a configuration that the server refuses is an error, also under allow', async (t) => {
  const server = await new Server(t).start()
  const limiter = server.limiter(t, { policy: 'nope', onUnavailable: 'allow' })
  await assert.rejects(limiter.ready(), /NOPOLICY/)
  await assert.rejects(limiter.check('k'), /NOPOLICY/)
  await server.command('RL.POLICY', 'SET', 'nope', 'LIMITS', 'TB', '2', '1', '1h')
  await until(async () => (await limiter.check('k').catch(() => undefined))?.source === 'server')
  await server.command('RL.POLICY', 'DEL', 'nope')
  assert.equal((await limiter.check('k')).source, 'unavailable', 'a deleted policy is no outage')
})

test('a password that the server refuses is an error, also under allow', async (t) => {
  const server = await new Server(t).start('--requirepass', 'secret')
  for (const url of [server.socket, `redis://:wrong@localhost${server.socket}`]) {
    const options = { url: server.socket, redis: url === server.socket ? {} : { password: 'wrong' }, limits: 'TB 5 1 1h', onUnavailable: 'allow' }
    const limiter = server.limiter(t, options)
    await assert.rejects(limiter.ready(), /NOAUTH|WRONGPASS/)
    await assert.rejects(limiter.check('k'), /NOAUTH|WRONGPASS/)
  }
})

test('ready does not wait for ever', async (t) => {
  const limiter = new Limiter({ url: join(tmpdir(), 'no-such-socket'), limits: 'TB 5 1 1h', onUnavailable: 'allow', log: quiet })
  t.after(() => limiter.close())
  await limiter.ready()
})

test('two instances with 64 callers each admit exactly the limit', async (t) => {
  const server = await new Server(t).start()
  const limits = 'SW 1000 1d FIXED'
  const instances = [1, 2].map(() => server.limiter(t, { limits, onUnavailable: 'deny', denialCacheMs: 0 }))
  await Promise.all(instances.map((limiter) => limiter.ready()))
  let admitted = 0
  let unavailable = 0
  const caller = async (limiter) => {
    for (let i = 0; i < 10; i++) {
      const result = await limiter.check('k')
      if (result.allowed) admitted++
      if (result.source === 'unavailable') unavailable++
    }
  }
  await Promise.all(instances.flatMap((limiter) => Array.from({ length: 64 }, () => caller(limiter))))
  if (unavailable === 0) assert.equal(admitted, 1000)
  else assert.ok(admitted <= 1000, `${admitted} admitted`)
})

test('a server that hangs, and goes on', async (t) => {
  const server = await new Server(t).start()
  const limiter = server.limiter(t, { limits: 'TB 1000 1 1h', onUnavailable: 'local', instances: 2, deadlineMs: 100 })
  await limiter.ready()
  await until(async () => (await limiter.check('k')).source === 'server')
  server.process.kill('SIGSTOP')
  await until(async () => (await limiter.check('k')).source === 'local')
  server.process.kill('SIGCONT')
  await until(async () => (await limiter.check('k')).source === 'server')
})

test('a server that is killed, and started again', async (t) => {
  const server = await new Server(t).start()
  const limiter = server.limiter(t, { limits: 'TB 1000 1 1h', onUnavailable: 'deny' })
  await limiter.ready()
  assert.equal((await limiter.check('k')).source, 'server')
  await server.stop()
  const denied = await limiter.check('k')
  assert.equal(denied.allowed, false)
  assert.equal(limiter.problem(denied).status, 503)
  await server.start()
  await until(async () => (await limiter.check('k')).source === 'server')
})

test('0 units are not held, and take no place', async (t) => {
  const server = await new Server(t).start()
  const limiter = server.limiter(t, { limits: ['TB 10 1 1h', 'CC 1 600'], onUnavailable: 'deny' })
  await limiter.ready()
  for (let i = 0; i < 3; i++) {
    const reservation = await limiter.reserve('k', 0)
    assert.ok(reservation.result.allowed)
    await reservation.commit()
    assert.ok((await limiter.check('k', { cost: 0 })).allowed)
  }
})

test('a policy for networks gives its places back', async (t) => {
  const server = await new Server(t).start()
  await server.command('RL.POLICY', 'SET', 'nets', 'KEY', 'IP', '24', '64', 'LIMITS', 'CC', '2', '600')
  const limiter = server.limiter(t, { policy: 'nets', onUnavailable: 'deny' })
  await limiter.ready()
  for (const key of ['192.0.2.7', '2001:db8:1:2::7']) {
    for (let i = 0; i < 5; i++) {
      const result = await limiter.check(key)
      assert.ok(result.allowed, `${key}: call ${i}`)
      await limiter.release(result.place)
    }
  }
})

test('a proxy that ends connections before their replies', async (t) => {
  const server = await new Server(t).start()
  let replies = 0
  const proxy = createServer((client) => {
    const upstream = connect(server.socket)
    upstream.on('data', (bytes) => (replies++ % 10 === 9 ? (client.destroy(), upstream.destroy()) : client.write(bytes)))
    client.on('data', (bytes) => upstream.write(bytes))
    for (const [a, b] of [[client, upstream], [upstream, client]]) {
      a.on('error', () => {})
      a.on('close', () => b.destroy())
    }
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.after(() => proxy.close())
  const limiter = new Limiter({ url: `redis://127.0.0.1:${proxy.address().port}`, limits: 'SW 100 1d FIXED', onUnavailable: 'deny', id: 'random', deadlineMs: 1000, denialCacheMs: 0, log: quiet })
  t.after(() => limiter.close())
  await limiter.ready()
  let admitted = 0
  let decided = 0
  for (let i = 0; i < 200; i++) {
    const result = await limiter.check('k')
    if (result.allowed) admitted++
    if (result.source === 'server') decided++
  }
  assert.ok(decided > 100, `${decided} of 200 decided`)
  assert.ok(admitted <= 100, `${admitted} admitted`)
  if (decided === 200) assert.equal(admitted, 100, 'a call that is sent again counts once')
})

test("the application's own clients", async (t) => {
  const server = await new Server(t).start()
  assert.throws(() => new Limiter({ client: new Redis(server.socket, { lazyConnect: true }), limits: 'TB 5 1 1h', onUnavailable: 'deny' }), /autoResendUnfulfilledCommands/)
  const ioredis = new Redis(server.socket, { autoResendUnfulfilledCommands: false })
  const nodeRedis = createClient({ socket: { path: server.socket } })
  nodeRedis.on('error', () => {})
  await nodeRedis.connect()
  t.after(() => (ioredis.disconnect(), nodeRedis.close()))
  for (const client of [ioredis, nodeRedis]) {
    const limiter = new Limiter({ client, limits: 'TB 5 1 1h', onUnavailable: 'deny', deadlineMs: 1000, log: quiet })
    await limiter.ready()
    assert.equal((await limiter.check('k')).source, 'server')
  }
  assert.equal((await server.command('TB.ACQUIRE', 'limit:k', '5', '1', '3600', '0'))[2], 3)
})

test('places of a policy, and their release', async (t) => {
  const server = await new Server(t).start()
  await server.command('RL.POLICY', 'SET', 'jobs', 'LIMITS', 'TB', '100', '1', '1h', 'CC', '1', '1h')
  const limiter = server.limiter(t, { policy: 'jobs', onUnavailable: 'deny', denialCacheMs: 0 })
  // The first call comes before the clauses of the policy are known.
  const [first] = await Promise.all([limiter.check('k'), limiter.ready()])
  assert.equal(first.allowed, true)
  assert.equal((await limiter.check('k')).allowed, false, 'a call without a member is one of its own')
  await limiter.release(first.place)
  const second = await limiter.check('k', { member: 'b' })
  assert.deepEqual([second.allowed, second.place.member], [true, 'b'])
  await limiter.release(second.place)
  const reservation = await limiter.reserve('k', 1)
  assert.equal((await limiter.check('k')).allowed, false)
  await reservation.commit()
  assert.equal((await limiter.check('k')).allowed, true)
})

test('a reservation', async (t) => {
  const server = await new Server(t).start()
  await server.command('RL.POLICY', 'SET', 'tokens', 'LIMITS', 'TB', '1000', '1', '1h')
  const limiter = server.limiter(t, { policy: 'tokens', onUnavailable: 'deny' })
  await limiter.ready()
  const reservation = await limiter.reserve('k', 800, { ttlMs: 60_000 })
  assert.equal(reservation.result.remaining, 200)
  reservation.actual = 950
  await reservation.commit()
  assert.equal((await limiter.check('k', { cost: 0 })).remaining, 50)
  const other = await limiter.reserve('k', 50)
  await other.cancel()
  assert.equal((await limiter.check('k', { cost: 0 })).remaining, 50)
})

test('the stores of other packages', async (t) => {
  const server = await new Server(t).start()
  const options = { url: server.socket, onUnavailable: 'deny', deadlineMs: 1000, log: quiet }
  const store = new CellserverStore(options)
  t.after(() => store.shutdown())
  store.init({ windowMs: 86_400_000, limit: 2 })
  const hits = []
  for (let i = 0; i < 4; i++) hits.push((await store.increment('k')).totalHits)
  assert.deepEqual(hits, [1, 2, 3, 3])
  await store.decrement('k') // that of a denied request
  await store.decrement('k')
  assert.equal((await store.get('k')).totalHits, 2, 'what was denied has taken nothing')
  await store.decrement('k')
  assert.equal((await store.get('k')).totalHits, 1)
  await store.resetKey('k')
  assert.equal((await store.increment('k')).totalHits, 1)

  const storage = new CellserverStorage(options)
  t.after(() => storage.onModuleDestroy())
  const blocked = []
  for (let i = 0; i < 5; i++) blocked.push((await storage.increment('k', 86_400_000, 4, 86_400_000, 'short')).isBlocked)
  assert.deepEqual(blocked, [false, false, false, false, true])

  const Store = rateLimitStore(options)
  t.after(() => Store.limiter.close())
  const fastify = new Store({}).child({ routeInfo: { method: 'GET', url: '/' } })
  const current = () => new Promise((resolve, reject) => fastify.incr('k', (error, result) => (error ? reject(error) : resolve(result.current)), 86_400_000, 2))
  assert.deepEqual([await current(), await current(), await current()], [1, 2, 3])
})

test("the rule for names is the server's", async (t) => {
  const server = await new Server(t).start()
  const names = Array.from({ length: 80 }, (_, n) => 'a'.repeat(n))
  for (let code = 0; code < 384; code++) names.push(String.fromCodePoint(code), `a${String.fromCodePoint(code)}`)
  const redis = new Redis(server.socket)
  t.after(() => redis.disconnect())
  const replies = await redis.pipeline(names.map((name) => ['call', 'RL.POLICY', 'SET', name, 'LIMITS', 'TB', '1', '1', '1'])).exec()
  let accepted = 0
  for (const [i, [error]] of replies.entries()) {
    let refusal
    try {
      new FakeLimiter({ policy: names[i], limits: 'TB 1 1 1' })
      accepted++
    } catch (thrown) {
      refusal = thrown
    }
    assert.equal(refusal?.message, error === null ? undefined : 'policy is a name of 1 to 64 letters, digits and _ . -', JSON.stringify(names[i]))
    if (error) assert.match(error.message, /^ERR the name of a policy/)
  }
  assert.equal(accepted, 64 + 2 * 65)
})
