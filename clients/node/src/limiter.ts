import { randomBytes } from 'node:crypto'
import { networkKey } from './address.js'
import { Asking, type Asker } from './asking.js'
import { ServerBackend, type Backend, type Shared } from './backend.js'
import { Breaker, pauseMs, type Outcome, type Ticket } from './breaker.js'
import { DenialCache, scopeOf } from './cache.js'
import { clauseText, localOf, parseClause, type Clause } from './clause.js'
import { connect, errorOf, FaultError, ServerError } from './connection.js'
import { Deadlines } from './deadlines.js'
import { headerFields, problemOf, type Field, type HeaderAnswer, type HeaderClause, type Problem } from './headers.js'
import { bounded } from './keys.js'
import { approximates, LocalLimiter } from './local.js'
import { Instruments } from './metrics.js'
import { ConfigurationError, type CallOptions, type LimiterOptions, type Log, type Reservation } from './options.js'
import { resultOf, type Decision, type Place, type Result } from './result.js'
import { judge, type Fault } from './verdict.js'
import { clausesOf, networksOf, noWindow, windowOf, type Window } from './window.js'
import { callWords, renewWords, settleWords, startWords, stateKey, type Config, type Request } from './wire.js'

interface KeyedCall extends CallOptions {
  key: string
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

/** Returns a name that no other call has. */
function random(): string {
  return randomBytes(12).toString('hex')
}

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
  readonly #asker: Asker
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
  #windows: Window[] = []
  /** Whether calls take places, for which they need a member. */
  #places = false
  /** The lengths of networks that KEY IP makes of addresses. */
  #networks: [v4: number, v6: number] | undefined
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
    if (options.policy !== undefined && !/^[A-Za-z0-9_.-]{1,64}$/.test(options.policy)) throw new TypeError('policy is a name of 1 to 64 letters, digits and _ . -')
    this.#config = { policy: options.policy ?? 'limit', limits, class: options.class, keep: options.keep }
    callWords(this.#config, { key: '', cost: 1, mode: '' }) // throws if the options do not fit each other
    this.#setClauses(limits)
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
    this.#asker = {
      config: this.#config,
      backend: this.#backend,
      deadlines: new Deadlines(this.#deadlineMs),
      answered: (request, ticket, decision) => this.#answered(request, ticket, decision),
      failed: (request, ticket, error) => this.#failed(request, ticket, error),
      tooLate: (request, decision) => this.#tooLate(request, decision),
    }
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

  /** Decides a request by the options `key`, `cost`, `member` and `id`. Its result is undefined for a request that is not limited. */
  decide(request: R): Promise<Result | undefined> {
    try {
      const call = this.#callOf(request)
      if (call instanceof Promise) return call.then((known) => known && this.check(known.key, known))
      return call === undefined ? Promise.resolve(undefined) : this.check(call.key, call)
    } catch (fault) {
      return Promise.reject(fault as Error)
    }
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
      member: call.member ?? (this.#places ? random() : undefined),
      id: this.#withID ? (call.id ?? (this.options.id === 'random' ? random() : undefined)) : undefined,
    })
  }

  /** Gives back what `check` has taken under clauses with CC: the `place` of its result. It is done at most once for each result. */
  async release({ key, member, local }: Place): Promise<void> {
    if (local) return this.#local?.release(key, member)
    const state = this.#networks === undefined ? key : networkKey(key, ...this.#networks)
    const settled: Promise<void>[] = []
    this.#windows.forEach((window, i) => {
      if (window.concurrent) settled.push(this.#settle(['CC.RELEASE', stateKey(this.#config.policy, state, i + 1), member]))
    })
    await Promise.all(settled)
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
    const id = call.id ?? random()
    // 0 units are not held: the call only asks whether the key is denied.
    const held = units > 0 ? { id, ttlMs } : {}
    const request: Request = { key: bounded(key), cost: units, mode: '', member: call.member ?? (this.#places ? id : undefined), ...held }
    const result = await this.#decided(request)
    const holds = units > 0 && result.allowed && result.source === 'server'
    let renewal: NodeJS.Timeout | undefined
    if (holds) {
      const until = performance.now() + renewedMs
      renewal = setInterval(() => {
        if (performance.now() > until) clearInterval(renewal)
        else void this.#settle(renewWords(this.#config, request))
      }, ttlMs / 2)
      renewal.unref()
    }
    let ended = false
    const end = async (used: () => number): Promise<void> => {
      if (ended) return
      ended = true
      clearInterval(renewal)
      if (result.place !== undefined) await this.release(result.place)
      if (holds) await this.#settle(settleWords(this.#config, request, used()))
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

  #setClauses(clauses: Clause[]): void {
    this.#windows = clauses.map(windowOf)
    this.#places = this.#windows.some((window) => window.concurrent)
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
      if (this.#places) request.member ??= random() // the clauses were not known before
    } catch (error) {
      return this.#failed(request, ticket, error instanceof ConfigurationError ? error : errorOf(error))
    }
    return this.#ask(request, ticket, Math.max(1, deadline - performance.now()))
  }

  /** Asks the server. ms is what is left of the deadline, if that is not all of it. */
  #ask(request: Request, ticket: Ticket = this.#breaker.begin(this.#now()), ms?: number): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (ticket.allowed) new Asking(this.#asker, request, ticket, resolve, reject).begin(ms)
      else resolve(this.#unavailable(request, 'breaker'))
    })
  }

  #answered(request: Request, ticket: Ticket, decision: Decision): Result {
    const now = this.#now()
    this.#end(ticket, 'answered', now)
    if (this.#local !== undefined && now - this.#localAt > forgetMs) this.#local = undefined
    this.#refreshPolicy(now)
    const result = resultOf(decision, request.cost, 'server', request.mode === 'PARTIAL')
    if (this.#places && result.allowed) result.place = placeOf(request, false)
    const scope = result.allowed ? undefined : this.#scope(request)
    if (scope !== undefined) this.#cache.put(scope, request.cost, decision, now)
    return result
  }

  /** Gives back the places of a call whose caller was answered without them. */
  #tooLate(request: Request, decision: Decision): void {
    const place = this.#places && decision.refused === 0 ? placeOf(request, false) : undefined
    if (place !== undefined) void this.release(place)
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

  #end(ticket: Ticket, outcome: Outcome, now = this.#now()): void {
    const opened = this.#breaker.end(ticket, now, outcome, this.#shared.pauseMs())
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
      const reply = await this.#backend.call(['RL.POLICY', 'GET', this.#config.policy])
      const clauses = clausesOf(reply)
      this.#networks = networksOf(reply)
      this.#setClauses(clauses)
      if (needed) this.#fallback = clauses
    } catch (error) {
      if (!(errorOf(error) instanceof ServerError)) throw error
      if (needed && this.#fallback.length === 0) throw new ServerError(`NOPERM onUnavailable: local needs fallback, or a user with +rl.policy|get: ${(error as Error).message}`)
    }
    this.#fallbackAt = this.#now()
  }

  /** Asks for the clauses of the policy again when they are a minute old. The call that finds this does not wait for it. */
  #refreshPolicy(now: number): void {
    if (this.#config.limits.length > 0 || now - this.#fallbackAt < policyMs) return
    this.#fallbackAt = now
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
      const result = resultOf(this.#local.decide(request.key, request.cost, this.#wall(), request.member, request.mode === 'PEEK'), request.cost, 'local')
      if (this.#places && result.allowed) result.place = placeOf(request, true)
      return result
    }
    const allowed = onUnavailable === 'allow'
    return { allowed, limit: 0, remaining: 0, granted: allowed ? request.cost : 0, retryAfterMs: allowed ? undefined : 1000, resetAfterMs: undefined, source: 'unavailable', policies: [], never: false, blocked: false, place: undefined }
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

/** Returns the place that an allowed call has taken. That of a reservation ends with it. */
function placeOf({ key, cost, mode, member, ttlMs }: Request, local: boolean): Place | undefined {
  return member === undefined || cost <= 0 || mode === 'PEEK' || ttlMs !== undefined && !local ? undefined : { key, member, local }
}
