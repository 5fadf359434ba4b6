// Responses whose end Node does not tell, and lists of header fields.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import { test as run } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Hono } from 'hono'
import { cellserver } from '../dist/esm/express.js'
import { cellserver as honoCell } from '../dist/esm/hono.js'
import { FakeLimiter } from '../dist/esm/testing.js'

const test = (name, body) => run(name, { timeout: 20_000 }, body)
const make = () => new FakeLimiter({ limits: ['TB 1000 1 60', 'CC 5 600'], key: () => 'k' })
const places = async (limiter) => (await limiter.check('k', { cost: 0, mode: 'PEEK' })).remaining
async function all(limiter) {
  for (let i = 0; i < 100 && (await places(limiter)) < 5; i++) await sleep(20)
  return places(limiter)
}
async function listening(t, server) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => (server.closeAllConnections?.(), server.close()))
  return server.address().port
}

test('responses behind another one of a pipeline give their places back', async (t) => {
  const limiter = make()
  const middleware = cellserver(limiter)
  let n = 0
  const port = await listening(t, http.createServer((req, res) => middleware(req, res, () => n++ === 0 ? setTimeout(() => res.end('x'), 300) : res.end('y'))))
  const client = net.connect(port, '127.0.0.1').on('error', () => {})
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(4))
  while (n < 4) await sleep(5)
  client.destroy()
  assert.equal(await all(limiter), 5)
})

test('a stream of HTTP/2 that is reset before the decision gives its place back', async (t) => {
  const limiter = make()
  const middleware = cellserver(limiter)
  let n = 0
  const port = await listening(t, http2.createServer((req, res) => void setTimeout(() => middleware(req, res, () => { n++; res.end('x') }), 100)))
  const client = http2.connect(`http://127.0.0.1:${port}`).on('error', () => {})
  t.after(() => client.destroy())
  for (let i = 0; i < 3; i++) {
    const stream = client.request({ ':path': '/' }).on('error', () => {})
    setTimeout(() => stream.close(http2.constants.NGHTTP2_CANCEL), 40)
  }
  while (n < 3) await sleep(5)
  assert.equal(await all(limiter), 5)
})

test('Hono: HEAD gives its place back, and a response of fetch has fields', async (t) => {
  const limiter = make()
  const port = await listening(t, http.createServer((_req, res) => res.end('up')))
  const app = new Hono()
  app.use(honoCell(limiter))
  app.get('/', (c) => c.text('hello'))
  await app.request('/', { method: 'HEAD' })
  assert.equal(await all(limiter), 5)
  const plain = new Hono()
  plain.use(honoCell(new FakeLimiter({ limits: 'TB 10 1 60', key: () => 'k' })))
  plain.get('/', () => fetch(`http://127.0.0.1:${port}/`))
  const response = await plain.request('/')
  assert.equal(response.status, 200)
  assert.ok(response.headers.get('RateLimit'))
})

test('writeHead with a list keeps all its fields', async (t) => {
  const middleware = cellserver(new FakeLimiter({ limits: 'TB 10 1 60', key: () => 'k' }))
  const cookies = ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']
  const port = await listening(t, http.createServer((req, res) => middleware(req, res, () => res.writeHead(200, cookies).end('x'))))
  const response = await fetch(`http://127.0.0.1:${port}/`)
  assert.deepEqual(response.headers.getSetCookie(), ['a=1', 'b=2'])
  assert.ok(response.headers.get('RateLimit'))
  assert.equal(cookies.length, 4)
})
