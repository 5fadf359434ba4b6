// What a limiter decides, in virtual time and without a server.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Limiter } from '../dist/esm/index.js'
import { FakeLimiter } from '../dist/esm/testing.js'

const quiet = { warn() {}, error() {} }

test('the worked table of a bucket of two', async () => {
  const limiter = new FakeLimiter({ policy: 'api', limits: 'TB 2 1 60', onUnavailable: 'deny', denialCacheMs: 1000, log: quiet })
  let result = await limiter.check('a')
  assert.deepEqual(limiter.headers(result), [['RateLimit-Policy', '"api";q=2'], ['RateLimit', '"api";r=1;t=60']])
  limiter.advance(1)
  result = await limiter.check('a')
  assert.deepEqual(limiter.headers(result)[1], ['RateLimit', '"api";r=0;t=119'])
  limiter.advance(1)
  result = await limiter.check('a')
  assert.equal(result.allowed, false)
  assert.deepEqual(limiter.headers(result).slice(1), [['RateLimit', '"api";r=0;t=58'], ['Retry-After', '58']])
  limiter.advance(0.1)
  result = await limiter.check('a')
  assert.equal(result.source, 'cache')
  assert.deepEqual(limiter.headers(result)[2], ['Retry-After', '58'])
  assert.equal(limiter.calls.length, 3)
})

test('a cost above the capacity never passes', async () => {
  const limiter = new FakeLimiter({ limits: 'TB 2 1 60' })
  const result = await limiter.check('a', { cost: 3 })
  assert.equal(result.allowed, false)
  assert.equal(result.never, true)
  assert.equal(limiter.headers(result).some(([name]) => name === 'Retry-After'), false)
  assert.match(limiter.problem(result).detail, /above the limit/)
})

test('on_unavailable', async () => {
  const options = { policy: 'api', limits: 'TB 2 1 60', log: quiet }
  for (const [onUnavailable, allowed, source] of [['allow', true, 'unavailable'], ['deny', false, 'unavailable'], ['local', true, 'local']]) {
    const limiter = new FakeLimiter({ ...options, onUnavailable, instances: 2 })
    limiter.goAway()
    const result = await limiter.check('a')
    assert.equal(result.allowed, allowed, onUnavailable)
    assert.equal(result.source, source, onUnavailable)
    if (onUnavailable === 'deny') {
      assert.equal(limiter.problem(result).status, 503)
      assert.deepEqual(limiter.headers(result), [['Retry-After', '1']])
    }
    if (onUnavailable === 'local') {
      assert.deepEqual(limiter.headers(result), [], 'no header for a decision of the process')
      assert.equal((await limiter.check('a')).allowed, false, 'the share of one of two instances is one unit')
      limiter.comeBack()
      limiter.advance(2)
      assert.equal((await limiter.check('a')).source, 'server')
      limiter.goAway()
      assert.equal((await limiter.check('a')).allowed, false, 'a lost reply among others has no unused limit')
      limiter.comeBack()
      limiter.advance(61)
      assert.equal((await limiter.check('a')).source, 'server')
      limiter.goAway()
      assert.equal((await limiter.check('a')).allowed, true)
    }
  }
})

test('the breaker opens after five failures and sends one probe', async () => {
  const limiter = new FakeLimiter({ limits: 'TB 100 1 60', onUnavailable: 'allow', log: quiet })
  limiter.goAway()
  for (let i = 0; i < 5; i++) await limiter.check('a')
  limiter.comeBack()
  assert.equal((await limiter.check('a')).source, 'unavailable', 'open')
  assert.equal(limiter.calls.length, 0)
  limiter.advance(1.3)
  const both = await Promise.all([limiter.check('a'), limiter.check('a')])
  assert.deepEqual(both.map((r) => r.source).sort(), ['server', 'unavailable'], 'one probe')
  assert.equal((await limiter.check('a')).source, 'server')
})

test('a reservation is settled once', async () => {
  const limiter = new FakeLimiter({ limits: 'TB 100 1 60' })
  const reservation = await limiter.reserve('a', 80)
  assert.equal((await limiter.check('a', { cost: 30, mode: 'PEEK' })).allowed, false)
  reservation.actual = 50
  await reservation.commit()
  await reservation.cancel()
  assert.equal((await limiter.check('a', { cost: 0 })).remaining, 50)
})

test('one line a minute says that the server is away', async () => {
  const lines = []
  const log = { warn: (line) => lines.push(line), error: (line) => lines.push(line) }
  const limiter = new FakeLimiter({ limits: 'TB 100 1 60', onUnavailable: 'allow', log })
  limiter.goAway()
  for (let i = 0; i < 200; i++) {
    await limiter.check('a')
    limiter.advance(1)
  }
  assert.equal(lines.length, 4)
})

test('a long key is a digest', async () => {
  const limiter = new FakeLimiter({ limits: 'TB 100 1 60' })
  await limiter.check('x'.repeat(200))
  assert.match(limiter.calls[0].key, /^[0-9a-f]{32}$/)
})

test('options that do not fit are refused', () => {
  const url = 'redis://127.0.0.1:1'
  for (const [options, message] of [
    [{ url }, /policy or limits/],
    [{ url, policy: 'api' }, /onUnavailable has no default/],
    [{ url, policy: 'api', onUnavailable: 'local' }, /needs instances/],
    [{ url, policy: 'api', onUnavailable: 'allow', deadlineMs: 5 }, /20 to 1000/],
    [{ policy: 'api', onUnavailable: 'allow' }, /url or client/],
    [{ url, policy: 'a"\r\nX: y', onUnavailable: 'allow' }, /policy is a name/],
    [{ url, limits: 'TB x', onUnavailable: 'allow' }, /is not a clause/],
    [{ url, limits: 'CL 1 1 1', class: 'c', onUnavailable: 'allow' }, /inline limits/],
  ]) assert.throws(() => new Limiter(options), message)
})

test('metrics have no key', async () => {
  const seen = []
  const instrument = (name) => ({ add: (n, attributes) => seen.push([name, n, attributes]), record: (n, attributes) => seen.push([name, attributes]) })
  const meter = { createCounter: instrument, createHistogram: instrument, createUpDownCounter: instrument }
  const limiter = new FakeLimiter({ policy: 'api', limits: 'TB 1 1 60', meter, onUnavailable: 'allow', log: quiet })
  await limiter.check('secret')
  await limiter.check('secret')
  limiter.goAway()
  await limiter.check('secret')
  assert.ok(!JSON.stringify(seen).includes('secret'))
  const decisions = seen.filter(([name]) => name === 'cellserver.client.decisions').map(([, , a]) => `${a.policy} ${a.result} ${a.source}`)
  assert.deepEqual(decisions, ['api allowed server', 'api denied server', 'api allowed unavailable'])
})

test('a request gives no units back', async () => {
  for (const cost of [() => -1, async () => -1, () => NaN]) {
    const limiter = new FakeLimiter({ limits: 'TB 2 1 60', key: () => 'k', cost })
    await assert.rejects(limiter.decide({}), /gives no units back/)
  }
})

test('a fault of instances is the result of the call', async () => {
  const limiter = new FakeLimiter({ limits: 'TB 2 1 60', onUnavailable: 'local', instances: () => { throw new Error('no instances') }, log: quiet })
  limiter.goAway()
  for (let i = 0; i < 7; i++) await assert.rejects(limiter.check('k'), /no instances/)
})

test('a place that is granted after the deadline is given back', async () => {
  const sent = []
  const client = {
    isReady: true,
    on() {},
    sendCommand: (words) => new Promise((resolve) => sent.push({ words, resolve })),
  }
  const limiter = new Limiter({ client, limits: ['CC 1 60', 'TB 9 1 1'], onUnavailable: 'allow', deadlineMs: 20, log: quiet })
  const check = limiter.check('k', { member: 'm' })
  while (sent.length === 0) await new Promise((resolve) => setImmediate(resolve))
  const result = await check
  assert.deepEqual([result.source, result.place], ['unavailable', undefined])
  sent[0].resolve([[0, 1, 0, -1, 60_000], [[0, 1, 0, -1, 60_000], [0, 9, 8, -1, 1000]]])
  while (sent.length === 1) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(sent[1].words, ['CC.RELEASE', 'limit:k', 'm'])
})
