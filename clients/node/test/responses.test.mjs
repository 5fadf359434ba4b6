// What the middleware does when a response is written and when it ends: the places of CC are given back, and only some statuses
// have fields of limits.
import 'reflect-metadata'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { createRequire } from 'node:module'
import { test as run } from 'node:test'
import { serve } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { cellserver as expressCell } from '../dist/esm/express.js'
import { limit } from '../dist/esm/fastify.js'
import { cellserver as honoCell } from '../dist/esm/hono.js'
import { CellserverGuard } from '../dist/esm/nest.js'
import { FakeLimiter } from '../dist/esm/testing.js'

const require = createRequire(import.meta.url)
const test = (name, body) => run(name, { timeout: 60_000 }, body)

async function listening(t, server) {
  if (!server.listening) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
  t.after(() => (server.closeAllConnections(), server.close()))
  return `http://127.0.0.1:${server.address().port}`
}

// Applications with a route of each kind. work is called for /work, and its promise is awaited before the response.
const applications = {
  Express(t, limiter, work) {
    const app = express()
    app.use(expressCell(limiter))
    app.get('/work', async (_req, res) => (await work(), res.send('done')))
    app.get('/stream', async (_req, res) => (res.write('begun'), await work(), res.end('done')))
    app.get('/moved', (_req, res) => res.redirect('/work'))
    app.get('/raw/:status', (req, res) => res.writeHead(Number(req.params.status), { 'X-Own': 'yes' }).end())
    app.get('/:status', (req, res) => res.status(Number(req.params.status)).send('x'))
    return listening(t, createServer(app))
  },
  async Fastify(t, limiter, work) {
    const app = fastify({ forceCloseConnections: true })
    app.addHook('onRequest', limit(limiter))
    app.get('/work', async () => (await work(), 'done'))
    app.get('/stream', async (_request, reply) => {
      const { Readable } = await import('node:stream')
      return reply.send(Readable.from((async function* () { yield 'begun'; await work(); yield 'done' })()))
    })
    app.get('/moved', async (_request, reply) => reply.redirect('/work'))
    app.get('/raw/:status', (request, reply) => (reply.hijack(), reply.raw.writeHead(Number(request.params.status), { 'X-Own': 'yes' }).end()))
    app.get('/:status', async (request, reply) => reply.code(Number(request.params.status)).send('x'))
    t.after(() => app.close())
    return app.listen({ port: 0, host: '127.0.0.1' })
  },
  async Hono(t, limiter, work) {
    const app = new Hono()
    app.use(honoCell(limiter))
    app.get('/work', async (c) => (await work(), c.text('done')))
    app.get('/stream', (c) => c.body(new ReadableStream({
      async start(controller) {
        controller.enqueue(new TextEncoder().encode('begun'))
        await work()
        controller.close()
      },
    })))
    app.get('/moved', (c) => c.redirect('/work'))
    app.get('/raw/:status', (c) => new Response(null, { status: Number(c.req.param('status')), headers: { 'X-Own': 'yes' } }))
    app.get('/:status', (c) => c.text('x', Number(c.req.param('status'))))
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
    await once(server, 'listening')
    return listening(t, server)
  },
  async Nest(t, limiter, work) {
    const { NestFactory } = require('@nestjs/core')
    const { Controller, Get, Module, Param, Res } = require('@nestjs/common')
    class App {
      async work() { return (await work(), 'done') }
      async stream(res) { return (res.write('begun'), await work(), res.end('done')) }
      moved(res) { res.redirect('/work') }
      raw(status, res) { res.writeHead(Number(status), { 'X-Own': 'yes' }).end() }
      status(status, res) { res.status(Number(status)).send('x') }
    }
    Controller()(App)
    for (const [name, path, ...parameters] of [['work', 'work'], ['stream', 'stream', Res()], ['moved', 'moved', Res()], ['raw', 'raw/:status', Param('status'), Res()], ['status', ':status', Param('status'), Res()]]) {
      Get(path)(App.prototype, name, Object.getOwnPropertyDescriptor(App.prototype, name))
      parameters.forEach((parameter, i) => parameter(App.prototype, name, i))
    }
    class Root {}
    Module({ controllers: [App] })(Root)
    const app = await NestFactory.create(Root, { logger: false, forceCloseConnections: true })
    app.useGlobalGuards(new CellserverGuard(limiter))
    await app.listen(0, '127.0.0.1')
    t.after(() => app.close())
    return app.getUrl()
  },
}

// A Gate holds work until it is opened.
class Gate {
  #open
  #begin
  begun = new Promise((resolve) => (this.#begin = resolve))
  #opened = new Promise((resolve) => (this.#open = resolve))

  open() {
    this.#open()
  }

  work = () => {
    this.#begin()
    return this.#opened
  }
}

const oneAtATime = (options) => new FakeLimiter({ policy: 'jobs', limits: ['TB 100 1 60', 'CC 1 3600'], key: () => 'k', ...options })
const placesOf = async (limiter) => (await limiter.check('k', { cost: 0 })).policies[1].remaining

async function until(condition) {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve))
}

for (const [name, start] of Object.entries(applications)) {
  test(`${name}: a place is held until the response has ended`, async (t) => {
    const [limiter, gate] = [oneAtATime(), new Gate()]
    const base = await start(t, limiter, gate.work)
    for (const path of ['/work', '/stream']) {
      const first = fetch(base + path)
      await gate.begun
      if (path === '/work') {
        assert.equal((await fetch(base + path)).status, 429)
        gate.open()
      }
      await (await first).text()
      await until(async () => await placesOf(limiter) === 1)
    }
  })

  test(`${name}: a place is given back when the connection breaks`, async (t) => {
    for (const path of ['/work', '/stream']) {
      const [limiter, gate] = [oneAtATime(), new Gate()]
      const base = await start(t, limiter, gate.work)
      const request = get(base + path).on('error', () => {})
      await gate.begun
      assert.equal(await placesOf(limiter), 0)
      request.destroy()
      await until(async () => await placesOf(limiter) === 1)
      gate.open()
    }
  })

  test(`${name}: redirections and outages have no fields of limits`, async (t) => {
    const limiter = new FakeLimiter({ policy: 'api', limits: 'TB 100 1 60', key: () => 'k', headers: 'both' })
    const base = await start(t, limiter, () => {})
    for (const [path, status, has] of [['/moved', 302, false], ['/304', 304, false], ['/503', 503, false], ['/raw/503', 503, false], ['/200', 200, true], ['/404', 404, true], ['/500', 500, true], ['/work', 200, true], ['/stream', 200, true]]) {
      const response = await fetch(base + path, { redirect: 'manual' })
      assert.equal(response.status, status, path)
      for (const field of ['RateLimit', 'RateLimit-Policy', 'X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']) {
        assert.equal(response.headers.has(field), has, `${path} ${field}`)
      }
    }
    const own = await fetch(`${base}/raw/200`)
    assert.equal(own.headers.get('x-own'), 'yes')
    assert.ok(own.headers.has('ratelimit'))
  })
}

test('a place that the limiter in the process has given is given back', async (t) => {
  const [limiter, gate] = [oneAtATime({ onUnavailable: 'local', instances: 1, log: { warn() {}, error() {} } }), new Gate()]
  limiter.goAway()
  const base = await applications.Express(t, limiter, gate.work)
  const first = fetch(`${base}/work`)
  await gate.begun
  assert.equal((await limiter.check('k')).allowed, false)
  gate.open()
  const response = await first
  assert.equal(response.headers.has('ratelimit'), false, 'no fields of a local decision')
  await response.text()
  await until(async () => (await limiter.check('k')).allowed)
})

test('a place is given back where Hono has no response of Node', async () => {
  const limiter = oneAtATime()
  const app = new Hono()
  app.use(honoCell(limiter))
  app.get('/', (c) => c.text('done'))
  app.get('/empty', (c) => c.body(null, 204))
  app.get('/broken', () => { throw new Error('of the application') })
  app.onError((_error, c) => c.text('broken', 500))
  const response = await app.request('/')
  assert.equal(await placesOf(limiter), 0, 'the body is not read yet')
  assert.equal(await response.text(), 'done')
  assert.ok(response.headers.has('ratelimit'))
  await until(async () => await placesOf(limiter) === 1)
  await (await app.request('/')).body.cancel()
  await until(async () => await placesOf(limiter) === 1)
  for (const path of ['/empty', '/broken']) {
    await (await app.request(path)).text()
    await until(async () => await placesOf(limiter) === 1)
  }
})

test('a reservation ends its place', async (t) => {
  for (const [options, away] of [[{}, false], [{ onUnavailable: 'local', instances: 1, log: { warn() {}, error() {} } }, true]]) {
    const limiter = oneAtATime(options)
    if (away) limiter.goAway()
    for (const end of ['commit', 'cancel']) {
      const reservation = await limiter.reserve('k', 1)
      assert.equal(reservation.result.allowed, true)
      assert.equal((await limiter.check('k')).allowed, false)
      await reservation[end]()
    }
    assert.equal((await limiter.check('k')).allowed, true)
  }
})
