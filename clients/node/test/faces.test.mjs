// The middleware, plugins, stores and guards, under their frameworks and real HTTP.
import 'reflect-metadata'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { serve } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import * as limits from '../dist/esm/index.js'
import { cellserver as expressCell } from '../dist/esm/express.js'
import rateLimit from '@fastify/rate-limit'
import { cellserver as fastifyCell, limit, rateLimitStore } from '../dist/esm/fastify.js'
import { cellserver as honoCell } from '../dist/esm/hono.js'
import { CellserverGuard, CellserverStorage } from '../dist/esm/nest.js'
import { FakeLimiter } from '../dist/esm/testing.js'

const require = createRequire(import.meta.url)

// listening calls f with the address of a server, which it closes afterwards.
async function listening(t, server) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${server.address().port}`
}

function fake(options = {}) {
  return new FakeLimiter({ policy: 'api', limits: 'TB 2 1 60', key: limits.ip(), ...options })
}

// admitsTwo checks what every face does: two requests pass, and the third is denied with fields and a problem.
async function admitsTwo(base) {
  for (const remaining of [1, 0]) {
    const response = await fetch(base)
    assert.equal(response.status, 200)
    assert.equal(await response.text(), 'hello')
    assert.equal(response.headers.get('ratelimit-policy'), '"api";q=2')
    assert.match(response.headers.get('ratelimit'), new RegExp(`^"api";r=${remaining};t=`))
  }
  const denied = await fetch(base)
  assert.equal(denied.status, 429)
  assert.equal(denied.headers.get('retry-after'), '60')
  assert.match(denied.headers.get('content-type'), /^application\/(problem\+)?json/)
  assert.deepEqual((await denied.json())['violated-policies'], ['api'])
}

test('Express', async (t) => {
  const app = express()
  app.use(expressCell(fake()))
  app.get('/', (_req, res) => res.send('hello'))
  await admitsTwo(await listening(t, createServer(app)))
})

test('Express as CommonJS', async (t) => {
  const { cellserver } = require('../dist/cjs/express.js')
  const { FakeLimiter: Fake } = require('../dist/cjs/testing.js')
  const { ip } = require('../dist/cjs/index.js')
  const app = express()
  app.use(cellserver(new Fake({ policy: 'api', limits: 'TB 2 1 60', key: ip() })))
  app.get('/', (_req, res) => res.send('hello'))
  await admitsTwo(await listening(t, createServer(app)))
})

test('plain node:http', async (t) => {
  const middleware = expressCell(fake())
  await admitsTwo(await listening(t, createServer((req, res) => middleware(req, res, (error) => res.writeHead(error ? 500 : 200).end('hello')))))
})

test('an error of the application is passed on once', async (t) => {
  const app = express()
  const limiter = fake()
  let calls = 0
  app.use(expressCell(limiter))
  app.get('/', () => {
    calls++
    throw new Error('of the application')
  })
  app.use((error, _req, res, _next) => res.status(500).send(error.message))
  const base = await listening(t, createServer(app))
  const response = await fetch(base)
  assert.equal(await response.text(), 'of the application')
  assert.equal(calls, 1)
  assert.equal(limiter.calls.length, 1)
})

test('a fault of the key is an error of the application', async (t) => {
  const app = express()
  app.use(expressCell(fake({ onUnavailable: 'allow', key: () => { throw new Error('no user') } })))
  app.use((error, _req, res, _next) => res.status(500).send(error.message))
  const response = await fetch(await listening(t, createServer(app)))
  assert.equal(response.status, 500)
  assert.equal(await response.text(), 'no user')
})

test('the server is away', async (t) => {
  const limiter = fake({ onUnavailable: 'deny', log: { warn() {}, error() {} } })
  limiter.goAway()
  const app = express()
  app.use(expressCell(limiter))
  const response = await fetch(await listening(t, createServer(app)))
  assert.equal(response.status, 503)
  assert.equal(response.headers.get('retry-after'), '1')
  assert.equal(response.headers.get('ratelimit'), null)
})

test('a request without a key is not limited, and an inner limiter wins', async (t) => {
  const app = express()
  app.use(expressCell(fake({ key: (req) => (req.url === '/health' ? undefined : 'k') })))
  app.get('/health', (_req, res) => res.send('ok'))
  app.use(expressCell(fake({ policy: 'inner', limits: 'TB 9 1 60', key: () => 'k' })))
  app.get('/', (_req, res) => res.send('hello'))
  const base = await listening(t, createServer(app))
  assert.equal((await fetch(`${base}/health`)).headers.get('ratelimit'), null)
  const { headers } = await fetch(base)
  assert.match(headers.get('ratelimit'), /^"inner";r=8;t=\d+$/)
  assert.match(headers.get('ratelimit-policy'), /^"inner";q=9$/)
})

test('only failed logins are charged', async (t) => {
  const limiter = fake({ key: () => 'k' })
  const options = { chargeWhen: (status) => status >= 400 }
  const app = express()
  const { admission: admissionOf } = await import('../dist/esm/answer.js')
  app.use(async (req, res, next) => {
    const admission = await admissionOf(limiter, options, req)
    res.once('close', () => admission.ended(res.statusCode))
    next()
  })
  app.get('/:status', (req, res) => res.status(Number(req.params.status)).send('x'))
  const base = await listening(t, createServer(app))
  for (const status of [200, 200, 200, 401]) await (await fetch(`${base}/${status}`)).text()
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal((await limiter.check('k', { cost: 0 })).remaining, 1)
})

test('the plugin of Fastify, with a client of the application', async (t) => {
  let calls = 0
  const reply = (...five) => [five, [five]]
  const client = {
    isReady: true,
    on() {},
    sendCommand: async ([command, , , cost]) => {
      if (command === 'RL.POLICY') return ['name', 'api', 'limits', ['TB 2 1 60'], 'ms', 0]
      if (cost === '0') return reply(0, 2, 2, -1, 0)
      return ++calls > 2 ? reply(1, 2, 0, 60_000, 120_000) : reply(0, 2, 2 - calls, -1, 60_000 * calls)
    },
  }
  const app = fastify()
  await app.register(fastifyCell, { client, policy: 'api', key: limits.ip(), onUnavailable: 'deny', deadlineMs: 1000 })
  app.get('/', async () => 'hello')
  t.after(() => app.close())
  await admitsTwo(await app.listen({ port: 0, host: '127.0.0.1' }))
})

test('a hook of Fastify', async (t) => {
  const app = fastify()
  app.get('/', { onRequest: limit(fake()) }, async () => 'hello')
  t.after(() => app.close())
  await admitsTwo(await app.listen({ port: 0, host: '127.0.0.1' }))
})

test('Hono', async (t) => {
  const app = new Hono()
  app.use(honoCell(fake()))
  app.get('/', (c) => c.text('hello'))
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  await once(server, 'listening')
  t.after(() => server.close())
  await admitsTwo(`http://127.0.0.1:${server.address().port}`)
})

test('the guard of Nest', async (t) => {
  const { NestFactory } = require('@nestjs/core')
  const { Controller, Get, Module } = require('@nestjs/common')
  class App {
    hello() { return 'hello' }
  }
  Controller()(App)
  Get()(App.prototype, 'hello', Object.getOwnPropertyDescriptor(App.prototype, 'hello'))
  class Root {}
  Module({ controllers: [App] })(Root)
  const app = await NestFactory.create(Root, { logger: false })
  app.useGlobalGuards(new CellserverGuard(fake()))
  await app.listen(0, '127.0.0.1')
  t.after(() => app.close())
  await admitsTwo(await app.getUrl())
})

test('X-Forwarded-For is believed only behind a proxy of ours', async (t) => {
  for (const [options, forwarded, key] of [
    [{}, '6.6.6.6', '127.0.0.1'],
    [{ trustedHops: 1 }, '6.6.6.6, 198.51.100.7', '198.51.100.7'],
    [{ trustedHops: 1 }, undefined, '127.0.0.1'],
    [{ trustedNetworks: ['127.0.0.0/8', '10.0.0.0/8'] }, '6.6.6.6, 2001:db8:1:2:aaaa::1, 10.1.1.1', '2001:db8:1:2::/64'],
  ]) {
    const limiter = fake({ key: limits.ip(options) })
    const app = express()
    app.use(expressCell(limiter))
    const base = await listening(t, createServer(app))
    await fetch(base, { headers: forwarded === undefined ? {} : { 'X-Forwarded-For': forwarded } })
    assert.equal(limiter.calls[0].key, key)
  }
})

test('what the stores of other packages do not support is an error', async (t) => {
  const client = { isReady: true, on() {}, sendCommand: async () => [0, 2, 1, -1, 60_000] }
  const options = { client, onUnavailable: 'deny', deadlineMs: 1000 }
  const register = async (plugin, route) => {
    const app = fastify()
    t.after(() => app.close())
    await app.register(rateLimit, { max: 2, timeWindow: 60_000, store: rateLimitStore(options), ...plugin })
    app.get('/', { config: { rateLimit: route } }, async () => 'hello')
    return app.ready()
  }
  await register({ ban: 0 }, {})
  for (const [wrong, message] of [[{ ban: 3 }, /ban/], [{ continueExceeding: true }, /continueExceeding/], [{ exponentialBackoff: true }, /exponentialBackoff/]]) {
    await assert.rejects(register(wrong, {}), message)
    await assert.rejects(register({}, wrong), message)
  }
  const storage = new CellserverStorage(options)
  assert.equal((await storage.increment('k', 60_000, 2, 60_000, 'short')).totalHits, 1)
  await assert.rejects(storage.increment('k', 60_000, 2, 300_000, 'short'), /blockDuration of the throttler short/)
})
