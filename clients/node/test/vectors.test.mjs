// The vectors that all packages for callers share. A file that is not known here is a failure.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Addresses } from '../dist/esm/address.js'
import { Breaker } from '../dist/esm/breaker.js'
import { DenialCache, scopeOf } from '../dist/esm/cache.js'
import { clauseText, localOf, parseClause, shareOf } from '../dist/esm/clause.js'
import { headerFields, problemOf } from '../dist/esm/headers.js'
import { bounded, combined, digest } from '../dist/esm/keys.js'
import { LocalLimiter } from '../dist/esm/local.js'
import { readReply, resultOf } from '../dist/esm/result.js'
import { judge, retries } from '../dist/esm/verdict.js'
import { callWords, renewWords, settleWords, startWords, stateKey } from '../dist/esm/wire.js'
import { FakeLimiter } from '../dist/esm/testing.js'

const folder = new URL('../../vectors/', import.meta.url)

const five = (n) => [n.refused, n.limit, n.remaining, n.retryAfterMs, n.resetAfterMs]
const decisionOf = (numbers) => readReply(numbers)

const checks = {
  'headers.json': (v) => {
    assert.deepEqual(Object.fromEntries(headerFields(v.answer, v.style)), v.headers ?? {})
    if (v.problem) assert.deepEqual(problemOf(v.answer, v.status), v.problem)
  },
  'ip.json': (v) => {
    const options = { trustedHops: v.hops ?? 0, trustedNetworks: v.networks ?? [] }
    if (v.v6Prefix) options.v6Prefix = v.v6Prefix
    const addresses = new Addresses(options)
    const key = () => addresses.key(v.peer, v.forwarded ?? [])
    if (v.error) assert.throws(key)
    else assert.equal(key(), v.key)
  },
  'keys.json': (v) => {
    const parts = v.secret ? v.parts.map((part) => digest(part)) : v.parts
    const key = bounded(parts.length > 1 ? combined(parts) : parts[0])
    assert.equal(key, v.key)
    if (v.limits) assert.deepEqual([1, 2].map((i) => stateKey(v.limits, key, i)), v.states)
  },
  'decide.json': (v) => {
    const local = new LocalLimiter(v.clauses.map((text) => parseClause(text)))
    v.steps.forEach((step, i) => {
      const decision = local.decide('k', step.cost ?? 0, step.at, step.member)
      assert.deepEqual(five(decision), step.reply, `step ${i}`)
      assert.deepEqual(decision.clauses.map(five), step.each, `step ${i}`)
    })
  },
  'share.json': (v) => {
    const clause = shareOf(parseClause(v.clause), v.instances ?? 0)
    assert.equal(clauseText(clause), v.share)
    assert.equal(clauseText(localOf(clause)), v.local)
    assert.equal(new LocalLimiter([parseClause(v.clause)], v.instances ?? 0).decide('k', 0, 0).limit, v.limit ?? 0)
  },
  'breaker.json': (v) => {
    const breaker = new Breaker()
    const tickets = new Map()
    v.steps.forEach((step, i) => {
      const at = step.at ?? 0
      if (step.begin !== undefined) {
        const ticket = breaker.begin(at)
        tickets.set(step.begin, ticket)
        assert.equal(!ticket.allowed ? 'skip' : ticket.probe ? 'probe' : 'call', step.answer, `step ${i}`)
      } else {
        breaker.end(tickets.get(step.end), at, step.outcome, v.pause)
      }
      assert.equal(breaker.state, step.state, `step ${i}`)
    })
  },
  'cache.json': (v) => {
    const cache = new DenialCache(v.most ?? 0)
    v.steps.forEach((step, i) => {
      const scope = scopeOf(step.policy, step.key, step.class, step.keep, step.member)
      const plain = !step.mode && !step.ttl
      if (step.put) {
        if (plain) cache.put(scope, step.cost ?? 0, decisionOf(step.put), step.at ?? 0)
      } else {
        const found = plain ? cache.get(scope, step.cost ?? 0, step.at ?? 0) : undefined
        assert.deepEqual(found && five(found), step.hit ?? undefined, `step ${i}`)
      }
    })
  },
  'errors.json': (v) => {
    if (v.fault) {
      assert.equal(v.verdict, 'unavailable')
      assert.equal(retries(v.fault, v.id ?? false), v.retry ?? false)
      return
    }
    assert.deepEqual(judge(v.reply ?? '', v.phase, v.id ?? false), { verdict: v.verdict, failure: v.failure ?? false })
  },
  'wire.json': (v) => {
    if (v.do === 'read') {
      const read = () => resultOf(readReply(v.reply), v.cost ?? 0, 'server')
      if (v.error) return assert.throws(read)
      const result = read()
      const { allowed, limit, remaining, never, blocked } = result
      assert.deepEqual(
        { allowed, limit, remaining, retryAfter: result.retryAfterMs ?? null, resetAfter: result.resetAfterMs ?? null, never, blocked, clauses: result.policies.length },
        v.result,
      )
      return
    }
    const words = () => {
      const config = { policy: v.policy, limits: (v.limits ?? []).map((text) => parseClause(text)), class: v.class, keep: v.keep }
      const request = { key: v.key ?? '', cost: v.cost ?? 0, mode: v.mode ?? '', member: v.member, id: v.id, ttlMs: v.ttl }
      switch (v.do) {
        case 'call': return callWords(config, request)
        case 'start': return startWords(config, v.member)
        case 'commit': return settleWords(config, request, v.cost ?? 0)
        case 'cancel': return settleWords(config, request, -1)
        case 'renew': return renewWords(config, request)
      }
      throw new Error(`do is ${v.do}`)
    }
    if (v.error) assert.throws(words)
    else assert.deepEqual(words(), v.words ?? undefined)
  },
  'table.json': async (v) => {
    const limiter = new FakeLimiter({ policy: v.policy, limits: v.limits, onUnavailable: v.onUnavailable, instances: v.instances, denialCacheMs: 1000, log: { warn() {}, error() {} }, pauseMs: v.pause })
    let at = 0
    for (const [i, step] of v.steps.entries()) {
      if (step.server) {
        if (step.server === 'away') limiter.goAway()
        else limiter.comeBack()
        continue
      }
      limiter.advance((step.at - at) / 1000)
      at = step.at
      const asked = limiter.asked
      const result = await limiter.check('k', { cost: step.cost ?? 1 })
      assert.equal(result.allowed ? 200 : limiter.problem(result).status, step.status, `step ${i}`)
      assert.deepEqual(Object.fromEntries(limiter.headers(result)), step.headers ?? {}, `step ${i}`)
      assert.equal(result.source, step.source, `step ${i}`)
      assert.equal(limiter.asked > asked, step.asked ?? false, `step ${i}`)
    }
  },
}

for (const name of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  test(name, async (t) => {
    assert.ok(checks[name], `${name} is not known here`)
    const { vectors } = JSON.parse(readFileSync(new URL(name, folder), 'utf8'))
    assert.ok(vectors.length > 0)
    for (const [i, v] of vectors.entries()) {
      try {
        await checks[name](v)
      } catch (error) {
        error.message = `vector ${i}, ${v.name ?? v.clause}: ${error.message}`
        throw error
      }
    }
  })
}
