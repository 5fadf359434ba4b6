import { randomBytes } from 'node:crypto'
import { type RedisOptions } from 'ioredis'
import { Breaker, pauseMs, type Outcome, type Ticket } from './breaker.js'
import { DenialCache, scopeOf } from './cache.js'
import { clauseText, localOf, parseClause, type Clause } from './clause.js'
import { connect, errorOf, FaultError, ServerError, type Connection, type IoredisClient, type NodeRedisClient } from './connection.js'
import { Deadlines } from './deadlines.js'
import { headerFields, problemOf, type Field, type HeaderAnswer, type HeaderClause, type HeaderStyle, type Problem } from './headers.js'
import { bounded, type KeyOf } from './keys.js'
import { approximates, LocalLimiter } from './local.js'
import { readReply, UnexpectedReply, resultOf, type Decision, type Result } from './result.js'
import { judge, retries, type Fault } from './verdict.js'
import { callWords, renewWords, settleWords, startWords, stateKey, type Config, type Mode, type Request } from './wire.js'

/** What happens to a call that the server does not decide in time. */
export type OnUnavailable = 'allow' | 'deny' | 'local'

/** What a limiter tells about itself. */
export interface Log {
  warn(message: string): void
  error(message: string): void
}

/** The part of a meter of OpenTelemetry's API that is used. */
export interface Meter {
  createCounter(name: string): { add(n: number, attributes?: Record<string, string>): void }
  createHistogram(name: string, options?: { unit?: string; advice?: { explicitBucketBoundaries?: number[] } }): { record(n: number, attributes?: Record<string, string>): void }
  createUpDownCounter(name: string): { add(n: number, attributes?: Record<string, string>): void }
}

/** The options of a limiter. */
export interface LimiterOptions<R = unknown> {
  /** The server, as `redis://user:password@host:6379`, `rediss://` or a path of a Unix socket. Either it or `client` is needed. */
  url?: string
  /** A client of the application: ioredis or node-redis. Its connection is left alone. */
  client?: IoredisClient | NodeRedisClient
  /** Options of ioredis for a connection by `url`, such as `tls`. */
  redis?: RedisOptions
  /** The name of a policy of the server. With `limits` it names them in keys and header fields, and is `limit` by default. */
  policy?: string
  /** Clauses such as `TB 200 100 1`, in place of a policy of the server. All of them are charged, or none. */
  limits?: string | string[]
  /** The key of a request. A request without one is not limited. It is needed by the middleware. */
  key?: KeyOf<R>
  /** The cost of a request: 1 by default. */
  cost?: number | ((request: R) => number | Promise<number>)
  /** Names the member of a CC clause: by default a random one for each request. */
  member?: (request: R) => string
  /** Milliseconds for everything that a check waits for, from 20 to 1,000: 50 by default. */
  deadlineMs?: number
  /** What happens to calls that the server does not decide in time: `allow`, `deny` (503), or `local`, a limiter in the process. */
  onUnavailable: OnUnavailable
  /** How many instances of the application share the limits while each decides by itself. Needed by `local`. */
  instances?: number | (() => number)
  /** The clauses of `local`. By default they are `limits`, or are asked of the server each minute (RL.POLICY GET). */
  fallback?: string | string[]
  /** For how many milliseconds a denial is repeated from memory at most: 1,000 by default, 0 for never. */
  denialCacheMs?: number
  /** Whether a denial has to reach the server, for policies with BAN. It switches the cache of denials off. */
  ban?: boolean
  /** Makes calls count once although they are sent again after a broken connection. `random` makes the ids. */
  id?: 'random' | ((request: R) => string | undefined)
  /** The options CLASS and KEEP of RL.USE. */
  class?: string
  keep?: string
  /** Which header fields the middleware writes: `draft` by default. */
  headers?: HeaderStyle
  log?: Log
  /** A meter of OpenTelemetry's API. */
  meter?: Meter
  /** A clock in milliseconds in the place of the machine's, for tests. */
  now?: () => number
}

/** The options of one call. */
export interface CallOptions {
  cost?: number | undefined
  mode?: Mode | undefined
  member?: string | undefined
  id?: string | undefined
}

interface KeyedCall extends CallOptions {
  key: string
}

/** The error for a configuration that the server refuses. */
export class ConfigurationError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigurationError'
  }
}

/** Units that were taken before the cost of a call is known. */
export interface Reservation {
  result: Result
  /** The units that the call has cost. Without a number, those that were reserved. */
  actual: number
  /** Ends the reservation: the units beyond `actual` are given back, or missing ones charged. */
  commit(): Promise<void>
  /** Gives all units back. */
  cancel(): Promise<void>
}

/** What answers calls: a server, or a double in tests. */
export interface Backend {
  /** Asks for a decision. It rejects with an error of the client's own: see errorOf. */
  decide(config: Config, request: Request): Promise<Decision>
  /** Sends another command. */
  call(words: string[]): Promise<unknown>
  ready(): boolean
  whenReady(callback: () => void): () => void
  refusal(): string | undefined
  renew(): void
  close(): Promise<void>
}

/** What limiters with the same server share. */
export interface Shared {
  backend: Backend
  breaker: Breaker
  /** For how many milliseconds the breaker stays open each time. */
  pauseMs(): number
}

class ServerBackend implements Backend {
  constructor(readonly connection: Connection) {}

  decide(config: Config, request: Request): Promise<Decision> {
    return this.connection.call(callWords(config, request)).then(readReply)
  }

  call(words: string[]): Promise<unknown> {
    return this.connection.call(words)
  }

  ready(): boolean {
    return this.connection.ready()
  }

  whenReady(callback: () => void): () => void {
    return this.connection.whenReady(callback)
  }

  refusal(): string | undefined {
    return this.connection.refusal()
  }

  renew(): void {
    this.connection.renew()
  }

  close(): Promise<void> {
    return this.connection.close()
  }
}

const console_: Log = { warn: (message) => console.warn(message), error: (message) => console.error(message) }

/** For how many milliseconds `ready` waits. */
const readyMs = 1000

/** For how many milliseconds a reservation is renewed at most, if nothing ends it. */
const renewedMs = 3_600_000

/** The time in milliseconds for which a policy's clauses are taken as they were read. */
const policyMs = 60_000

/**
 * The time in milliseconds without an outage after which the limiter in the process is dropped. If it were dropped at the
 * first answer, each lost reply among others would begin with unused limits.
 */
const forgetMs = 60_000

/** The time in milliseconds between two lines of the log about the same thing. */
const quietMs = 60_000

/** Returns the cost of a request, which gives no units back. */
function chargeable(units: number | undefined): number | undefined {
  if (units !== undefined && !(units >= 0)) throw new RangeError(`cost is ${units}: a request gives no units back`)
  return units
}

function texts(limits: string | string[] | undefined): string[] {
  return limits === undefined ? [] : [limits].flat()
}

/** A Limiter asks a server whether calls may go ahead. */
export class Limiter<R = unknown> {
  readonly options: LimiterOptions<R>
  readonly #config: Config
  readonly #backend: Backend
  readonly #breaker: Breaker
  readonly #shared: Shared
  readonly #cache: DenialCache
  readonly #deadlineMs: number
  readonly #deadlines: Deadlines
  readonly #now: () => number // does not go back
  readonly #wall: () => number // since 1970
  readonly #log: Log
  readonly #lastLogged = new Map<string, number>()
  #local: LocalLimiter | undefined
  #localAt = 0
  #fallback: Clause[]
  #fallbackAt = -Infinity
  #started: Promise<void> | undefined
  #running = false
  #withID = true
  #windows: Window[]
  #instruments: Instruments | undefined

  /** Makes a limiter. shared is that of another limiter with the same server, or a double in tests. */
  constructor(options: LimiterOptions<R>, shared?: Shared) {
    this.options = options
    const limits = texts(options.limits).map((text) => parseClause(text))
    if (options.policy === undefined && limits.length === 0) throw new TypeError('a limiter needs policy or limits')
    if (limits.length > 16) throw new TypeError('limits has more than 16 clauses')
    if (!['allow', 'deny', 'local'].includes(options.onUnavailable)) throw new TypeError('onUnavailable has no default: it is allow, deny or local')
    if (options.onUnavailable === 'local' && options.instances === undefined) throw new TypeError('onUnavailable: local needs instances, the number of processes that share the limits')
    this.#deadlineMs = options.deadlineMs ?? 50
    if (!(this.#deadlineMs >= 20 && this.#deadlineMs <= 1000)) throw new TypeError('deadlineMs is from 20 to 1000')
    this.#deadlines = new Deadlines(this.#deadlineMs)
    if (options.policy !== undefined && !/^[A-Za-z0-9_.-]{1,64}$/.test(options.policy)) throw new TypeError('policy is a name of 1 to 64 letters, digits and _ . -')
    this.#config = { policy: options.policy ?? 'limit', limits, class: options.class, keep: options.keep }
    callWords(this.#config, { key: '', cost: 1, mode: '' }) // throws if the options do not fit each other
    this.#windows = limits.map(windowOf)
    this.#fallback = texts(options.fallback).map((text) => parseClause(text))
    if (this.#fallback.length === 0) this.#fallback = limits
    this.#cache = new DenialCache(options.ban ? 0 : (options.denialCacheMs ?? 1000))
    this.#now = options.now ?? (() => performance.now())
    this.#wall = options.now ?? Date.now
    this.#log = options.log ?? console_
    if (options.meter !== undefined) this.#instruments = new Instruments(options.meter, this.#config.policy)
    if (options.onUnavailable === 'local') this.#sayApproximations()
    this.#shared = shared ?? { backend: new ServerBackend(connect(options.url, options.client, options.redis)), breaker: new Breaker(), pauseMs: () => pauseMs(Math.random()) }
    this.#backend = this.#shared.backend
    this.#breaker = this.#shared.breaker
    if (this.#backend.ready()) this.#startSoon()
    else this.#backend.whenReady(() => this.#startSoon())
  }

  /** Returns a limiter with other options on the same connection. */
  with<S = R>(options: Partial<LimiterOptions<S>>): Limiter<S> {
    const { policy: _policy, limits: _limits, ...rest } = this.options
    return new Limiter<S>({ ...(rest as unknown as LimiterOptions<S>), ...options }, this.#shared)
  }

  /**
   * Resolves when the server has accepted the configuration, or after a second without a server, and rejects with a
   * ConfigurationError when the server has refused it.
   */
  async ready(): Promise<void> {
    const deadline = performance.now() + readyMs
    if (!this.#backend.ready()) await this.#waitForReady(deadline)
    const refusal = this.#backend.refusal()
    if (!this.#backend.ready() && refusal !== undefined) throw new ConfigurationError(refusal)
    if (!this.#backend.ready()) return this.#say('warn', 'cellserver: there is no connection yet')
    this.#startSoon()
    return this.#inTime(this.#started!, deadline).catch((error: unknown) => {
      if (error instanceof ConfigurationError) throw error
      this.#say('warn', `cellserver: the configuration was not checked yet: ${(error as Error).message}`)
    })
  }

  /** Ends the limiter's own connection. */
  close(): Promise<void> {
    return this.#backend.close()
  }

  /** Decides a request by the options `key`, `cost`, `member` and `id`. It returns undefined for a request that is not limited. */
  async decide(request: R): Promise<Result | undefined> {
    const call = this.#callOf(request)
    if (call instanceof Promise) return call.then((known) => known && this.check(known.key, known))
    return call && this.check(call.key, call)
  }

  /** Reserves the cost of a request, as `decide` takes it. */
  async reserveFor(request: R): Promise<Reservation | undefined> {
    const call = await this.#callOf(request)
    return call && this.reserve(call.key, call.cost ?? 1, call)
  }

  #callOf(request: R): KeyedCall | undefined | Promise<KeyedCall | undefined> {
    const { key: keyOf, cost: costOf, id, member } = this.options
    if (keyOf === undefined) throw new TypeError('the limiter has no key')
    const key = keyOf(request)
    const cost = typeof costOf === 'function' ? costOf(request) : costOf
    const rest = { member: member?.(request), id: typeof id === 'function' ? id(request) : undefined }
    if (key instanceof Promise || cost instanceof Promise) {
      return Promise.all([key, cost]).then(([text, units]) => (text === undefined || text === null ? undefined : { key: text, cost: chargeable(units), ...rest }))
    }
    return key === undefined || key === null ? undefined : { key, cost: chargeable(cost), ...rest }
  }

  /** Decides a call for a key, within the deadline. It rejects only for faults of the program and of its configuration. */
  check(key: string, call: CallOptions = {}): Promise<Result> {
    if (call.cost !== undefined && call.cost < 0) this.#cache.forget(scopeOf(bounded(key), this.#config.class, this.#config.keep, call.member))
    return this.#decided({
      key: bounded(key),
      cost: call.cost ?? 1,
      mode: call.mode ?? '',
      member: call.member ?? (this.#hasPlaces() ? randomBytes(12).toString('hex') : undefined),
      id: this.#withID ? (call.id ?? (this.options.id === 'random' ? randomBytes(12).toString('hex') : undefined)) : undefined,
    })
  }

  /** Gives the places of a member back that `check` has taken under a policy or limits with CC. */
  async release(key: string, member: string): Promise<void> {
    for (const [i, window] of this.#windows.entries()) {
      if (window.concurrent) await this.#settle(['CC.RELEASE', stateKey(this.#config.policy, bounded(key), i + 1), member])
    }
  }

  /** Forgets what a key has used. With a policy it needs a user with +rl.reset. */
  async reset(key: string): Promise<void> {
    this.#cache.forget(scopeOf(bounded(key), this.#config.class, this.#config.keep, undefined))
    const { policy, limits } = this.#config
    if (limits.length === 0) return this.#settle(['RL.RESET', policy, bounded(key)])
    return this.#settle(['DEL', ...limits.map((_, i) => stateKey(policy, bounded(key), i + 1))])
  }

  /**
   * Takes units before the cost of a call is known. The result may be a denial; ending that does nothing. A reservation
   * that is not ended gives its units back after ttlMs, which is renewed while it is used.
   */
  async reserve(key: string, units: number, { ttlMs = 30_000, ...call }: CallOptions & { ttlMs?: number } = {}): Promise<Reservation> {
    const request: Request = { key: bounded(key), cost: units, mode: '', member: call.member, id: call.id ?? randomBytes(12).toString('hex'), ttlMs }
    const result = await this.#decided(request)
    const holds = result.allowed && result.source === 'server'
    let renewal: NodeJS.Timeout | undefined
    if (holds) {
      const until = performance.now() + renewedMs
      renewal = setInterval(() => {
        if (performance.now() > until) clearInterval(renewal)
        else void this.#settle(renewWords(this.#config, request))
      }, ttlMs / 2)
      renewal.unref()
    }
    let ended = !holds
    const end = async (used: () => number): Promise<void> => {
      if (ended) return
      ended = true
      clearInterval(renewal)
      await this.#settle(settleWords(this.#config, request, used()))
    }
    const reservation: Reservation = {
      result,
      actual: units,
      commit: () => end(() => Math.max(0, Math.ceil(reservation.actual))),
      cancel: () => end(() => -1),
    }
    return reservation
  }

  /** Returns the header fields of a result. Decisions that are not the server's have none. */
  headers(result: Result): Field[] {
    const style = this.options.headers ?? 'draft'
    if (!result.allowed && result.source === 'unavailable') return [['Retry-After', '1']]
    // The numbers of a part of the limits are not those of the limits, but the wait is one.
    if (result.source === 'local') return headerFields(this.#answer(result), style).filter(([name]) => name === 'Retry-After')
    return result.policies.length === 0 ? [] : headerFields(this.#answer(result), style)
  }

  /** Returns the body of a denial, and its status: 429, or 503 if the server is away. */
  problem(result: Result): Problem & { detail?: string } {
    if (result.source === 'unavailable') return { type: 'about:blank', title: 'Service Unavailable', status: 503 }
    const problem: Problem & { detail?: string } = problemOf(this.#answer(result), 429)
    if (result.never) problem.detail = 'The cost of the request is above the limit.'
    return problem
  }

  #answer(result: Result): HeaderAnswer {
    const windows = this.#windows
    const clauses: HeaderClause[] = []
    for (let i = 0; i < result.policies.length; i++) {
      const n = result.policies[i]!
      const window = windows[i] ?? noWindow
      clauses.push({
        denies: n.refused > 0,
        limit: n.limit,
        remaining: n.remaining,
        retryMillis: n.retryAfterMs,
        resetMillis: n.resetAfterMs,
        windowMillis: window.windowMillis,
        concurrent: window.concurrent,
        unlimited: window.unlimited,
      })
    }
    const binding: HeaderClause = {
      denies: !result.allowed,
      limit: result.limit,
      remaining: result.remaining,
      retryMillis: result.retryAfterMs ?? -1,
      resetMillis: result.resetAfterMs ?? -1,
    }
    if (clauses.length === 0) clauses.push(binding)
    return { policy: this.#config.policy, denied: !result.allowed, blocked: result.blocked, binding, clauses }
  }

  /** Whether calls take places, for which they need a member. */
  #hasPlaces(): boolean {
    return this.#windows.some((window) => window.concurrent)
  }

  #decided(request: Request): Promise<Result> {
    const cached = this.#cachedDenial(request)
    const instruments = this.#instruments
    const began = instruments === undefined ? 0 : performance.now()
    const result = cached !== undefined ? Promise.resolve(cached) : this.#running ? this.#ask(request) : this.#askFirst(request)
    if (instruments === undefined) return result
    return result.then((told) => {
      instruments.decision(told, performance.now() - began)
      return told
    })
  }

  #scope(request: Request): string | undefined {
    if (request.cost <= 0 || request.mode || request.ttlMs !== undefined) return undefined
    return scopeOf(request.key, this.#config.class, this.#config.keep, request.member)
  }

  #cachedDenial(request: Request): Result | undefined {
    if (this.#cache.size === 0) return undefined
    const scope = this.#scope(request)
    const decision = scope === undefined ? undefined : this.#cache.get(scope, request.cost, this.#now())
    return decision && resultOf(decision, request.cost, 'cache')
  }

  /** Asks before the configuration was checked: the connection and the check are part of the deadline, too. */
  async #askFirst(request: Request): Promise<Result> {
    const deadline = performance.now() + this.#deadlineMs
    const ticket = this.#breaker.begin(this.#now())
    if (!ticket.allowed) return this.#unavailable(request, 'breaker')
    try {
      if (!this.#backend.ready()) await this.#waitForReady(deadline)
      const refusal = this.#backend.refusal()
      if (!this.#backend.ready() && refusal !== undefined) throw new ConfigurationError(refusal)
      if (!this.#backend.ready()) return this.#failed(request, ticket, new FaultError('refused'))
      this.#startSoon()
      await this.#inTime(this.#started!, deadline)
    } catch (error) {
      return this.#failed(request, ticket, error instanceof ConfigurationError ? error : errorOf(error))
    }
    return this.#ask(request, ticket, Math.max(1, deadline - performance.now()))
  }

  /** Asks the server. ms is what is left of the deadline, if that is not all of it. */
  #ask(request: Request, ticket: Ticket = this.#breaker.begin(this.#now()), ms?: number): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (!ticket.allowed) return resolve(this.#unavailable(request, 'breaker'))
      const failed = (error: Error): void => {
        try {
          resolve(this.#failed(request, ticket, error))
        } catch (fault) {
          reject(fault as Error)
        }
      }
      if (!this.#backend.ready()) return failed(new FaultError('refused'))
      let forget = (): void => {}
      const late = this.#deadlines.add((busy) => {
        forget()
        failed(new FaultError('timeout', busy))
      }, ms)
      let again = false
      const send = (): void => {
        if (!late.live) return // its caller has gone: it must not be charged
        this.#backend.decide(this.#config, request).then(
          (decision) => {
            if (this.#deadlines.remove(late)) resolve(this.#answered(request, ticket, decision))
          },
          (reason: unknown) => {
            const error = errorOf(reason)
            if (error instanceof FaultError && !again && retries(error.fault, request.id !== undefined)) {
              again = true
              if (this.#backend.ready()) send()
              else forget = this.#backend.whenReady(send)
            } else if (this.#deadlines.remove(late)) failed(error)
          },
        )
      }
      send()
      return undefined
    })
  }

  #answered(request: Request, ticket: Ticket, decision: Decision): Result {
    this.#end(ticket, 'answered')
    if (this.#local !== undefined && this.#now() - this.#localAt > forgetMs) this.#local = undefined
    this.#refreshPolicy()
    const result = resultOf(decision, request.cost, 'server', request.mode === 'PARTIAL')
    const scope = result.allowed ? undefined : this.#scope(request)
    if (scope !== undefined) this.#cache.put(scope, request.cost, decision, this.#now())
    return result
  }

  /** Returns the result of a call without a decision. It throws if the error is a fault of the program. */
  #failed(request: Request, ticket: Ticket, error: Error): Result | Promise<Result> {
    if (error instanceof FaultError) {
      this.#end(ticket, error.busy ? 'abandoned' : 'failed')
      return this.#unavailable(request, error.fault)
    }
    const judged = error instanceof ServerError ? judge(error.message, 'call', request.id !== undefined) : undefined
    this.#end(ticket, judged?.failure ? 'failed' : 'answered')
    if (judged?.verdict === 'without-id' && request.ttlMs === undefined) {
      this.#withID = false
      return this.#ask({ ...request, id: undefined })
    }
    if (judged?.verdict !== 'unavailable' && judged?.verdict !== 'misconfigured') throw error
    if (judged.verdict === 'misconfigured') this.#say('error', `cellserver: ${error.message}`)
    return this.#unavailable(request, error.message.split(' ', 1)[0]!)
  }

  #end(ticket: Ticket, outcome: Outcome): void {
    const opened = this.#breaker.end(ticket, this.#now(), outcome, this.#shared.pauseMs())
    if (opened) {
      if (!ticket.probe) this.#instruments?.breaker(1)
      this.#backend.renew()
    } else if (ticket.probe && outcome === 'answered') {
      this.#instruments?.breaker(-1)
    }
  }

  #startSoon(): void {
    this.#started ??= this.#start()
    this.#started.catch(() => {}) // the next call tells
  }

  /** Checks the configuration. A server that decides nothing now leaves that to later. */
  async #start(): Promise<void> {
    try {
      const words = startWords(this.#config, this.#config.limits.length === 0 ? 'start' : undefined)
      if (words !== undefined) await this.#backend.call(words)
      if (this.#config.limits.length === 0) await this.#readPolicy()
      this.#running = true
    } catch (reason) {
      this.#started = undefined // the next call begins anew
      const error = errorOf(reason)
      if (error instanceof ServerError && judge(error.message, 'start', false).verdict === 'raise') throw new ConfigurationError(error.message)
      throw error
    }
  }

  /** Asks for the clauses of the policy: for the windows of header fields, and for `local`. It needs +rl.policy|get. */
  async #readPolicy(): Promise<void> {
    const needed = this.options.onUnavailable === 'local' && texts(this.options.fallback).length === 0
    try {
      const clauses = clausesOf(await this.#backend.call(['RL.POLICY', 'GET', this.#config.policy]))
      this.#windows = clauses.map(windowOf)
      if (needed) this.#fallback = clauses
    } catch (error) {
      if (!(errorOf(error) instanceof ServerError)) throw error
      if (needed && this.#fallback.length === 0) throw new ServerError(`NOPERM onUnavailable: local needs fallback, or a user with +rl.policy|get: ${(error as Error).message}`)
    }
    this.#fallbackAt = this.#now()
  }

  /** Asks for the clauses of the policy again when they are a minute old. The call that finds this does not wait for it. */
  #refreshPolicy(): void {
    if (this.#config.limits.length > 0 || this.#now() - this.#fallbackAt < policyMs) return
    this.#fallbackAt = this.#now()
    void this.#readPolicy().catch(() => {})
  }

  async #waitForReady(deadline: number): Promise<void> {
    if (this.#backend.ready()) return
    await new Promise<void>((resolve) => {
      let forget = (): void => {}
      const timer = setTimeout(() => { forget(); resolve() }, Math.max(0, deadline - performance.now()))
      forget = this.#backend.whenReady(() => { clearTimeout(timer); resolve() })
    })
  }

  async #inTime<T>(work: Promise<T>, deadline: number): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new FaultError('timeout')), Math.max(0, deadline - performance.now()))
    })
    work.catch(() => {}) // the caller has stopped to wait
    try {
      return await Promise.race([work, late])
    } finally {
      clearTimeout(timer)
    }
  }

  async #settle(words: string[]): Promise<void> {
    if (!this.#backend.ready()) return
    try {
      await this.#inTime(this.#backend.call(words), performance.now() + this.#deadlineMs)
    } catch (error) {
      this.#say('warn', `cellserver: ${words[0]}: ${(error as Error).message}`)
    }
  }

  #unavailable(request: Request, reason: Fault | string): Result {
    this.#instruments?.unavailable(reason)
    const { onUnavailable } = this.options
    this.#say('warn', `cellserver: the server does not decide (${reason}): ${onUnavailable} until it does`)
    if (onUnavailable === 'local' && this.#fallback.length > 0) {
      const instances = typeof this.options.instances === 'function' ? this.options.instances() : this.options.instances!
      this.#localAt = this.#now()
      this.#local ??= new LocalLimiter(this.#fallback, instances)
      return resultOf(this.#local.decide(request.key, request.cost, this.#wall(), request.member, request.mode === 'PEEK'), request.cost, 'local')
    }
    const allowed = onUnavailable === 'allow'
    return { allowed, limit: 0, remaining: 0, granted: allowed ? request.cost : 0, retryAfterMs: allowed ? undefined : 1000, resetAfterMs: undefined, source: 'unavailable', policies: [], never: false, blocked: false }
  }

  /** Writes a line to the log, at most once a minute. */
  #say(level: 'warn' | 'error', message: string): void {
    const now = this.#now()
    const last = this.#lastLogged.get(level)
    if (last !== undefined && now - last < quietMs) return
    this.#lastLogged.set(level, now)
    this.#log[level](message)
  }

  #sayApproximations(): void {
    for (const clause of this.#fallback) {
      if (approximates(clause)) this.#log.warn(`cellserver: onUnavailable: local decides ${clauseText(clause)} as ${clauseText(localOf(clause))}`)
    }
  }
}

/** What header fields say of a clause beside its numbers. */
interface Window {
  windowMillis: number
  concurrent: boolean
  unlimited: boolean
}

const noWindow: Window = { windowMillis: 0, concurrent: false, unlimited: false }

function windowOf(clause: Clause): Window {
  return { windowMillis: clause.family === 'SW' ? clause.periodMs : 0, concurrent: clause.family === 'CC', unlimited: clause.family === 'NONE' }
}

/** Returns the clauses in a reply of RL.POLICY GET, which is a map or a list of names and values. */
function clausesOf(reply: unknown): Clause[] {
  const list = Array.isArray(reply) ? reply : reply instanceof Map ? [...reply].flat() : Object.entries(reply as object).flat()
  const field = (name: string): unknown => list[list.indexOf(name) + 1]
  const limits = field('limits')
  if (!Array.isArray(limits)) throw new UnexpectedReply()
  return limits.map((text) => parseClause(String(text), Number(field('ms')) === 1 ? 1 : 1000))
}

/** The metrics of a limiter. No key is a label. */
class Instruments {
  readonly #policy: string
  readonly #decisions
  readonly #duration
  readonly #open
  readonly #unavailable

  constructor(meter: Meter, policy: string) {
    this.#policy = policy
    this.#decisions = meter.createCounter('cellserver.client.decisions')
    this.#duration = meter.createHistogram('cellserver.client.duration', { unit: 's', advice: { explicitBucketBoundaries: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1] } })
    this.#open = meter.createUpDownCounter('cellserver.client.breaker.open')
    this.#unavailable = meter.createCounter('cellserver.client.unavailable')
  }

  decision(result: Result, ms: number): void {
    this.#decisions.add(1, { policy: this.#policy, result: result.allowed ? 'allowed' : 'denied', source: result.source })
    this.#duration.record(ms / 1000)
  }

  breaker(n: number): void {
    this.#open.add(n)
  }

  unavailable(reason: string): void {
    this.#unavailable.add(1, { reason })
  }
}
