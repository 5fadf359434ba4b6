/** Doubles for tests: a limiter in virtual time that needs no server. */

import { Breaker } from './breaker.js'
import { parseClause } from './clause.js'
import { FaultError } from './connection.js'
import { type Backend, type Waiting } from './backend.js'
import { Limiter } from './limiter.js'
import { type LimiterOptions } from './options.js'
import { LocalLimiter } from './local.js'
import { type Decision } from './result.js'
import { type Config, type Request } from './wire.js'

class FakeBackend implements Backend {
  calls: Request[] = []
  asked = 0
  away = false
  readonly #reserved = new Map<string, Request>()
  readonly #members = new Map<string, string>() // and their keys
  readonly #local: LocalLimiter
  readonly #now: () => number

  constructor(local: LocalLimiter, now: () => number) {
    this.#local = local
    this.#now = now
  }

  decide(_config: Config, request: Request, waiting: Waiting): void {
    this.#decision(request).then((decision) => waiting.decided(decision), (error: unknown) => waiting.failed(error))
  }

  async #decision(request: Request): Promise<Decision> {
    this.asked++
    if (this.away) throw new FaultError('timeout')
    this.calls.push(request)
    const decision = this.#local.decide(request.key, request.cost, this.#now(), request.member, request.mode === 'PEEK')
    if (request.ttlMs !== undefined && request.id && decision.refused === 0) this.#reserved.set(request.id, request)
    if (request.member !== undefined && decision.refused === 0) this.#members.set(request.member, request.key)
    return decision
  }

  /** Ends a reservation, or gives a place back. Other commands do nothing. */
  async call([command, , id, used = '0']: string[]): Promise<unknown> {
    if (command === 'CC.RELEASE') return this.#release(id!)
    const reserved = this.#reserved.get(id ?? '')
    if (reserved === undefined || command === 'RL.RENEW') return 0
    this.#reserved.delete(id!)
    if (reserved.member !== undefined) this.#release(reserved.member)
    const more = (command === 'RL.COMMIT' ? Number(used) : 0) - reserved.cost
    if (more < 0) this.#local.decide(reserved.key, more, this.#now(), reserved.member)
    return 1
  }

  #release(member: string): number {
    const key = this.#members.get(member)
    if (key === undefined) return 0
    this.#members.delete(member)
    this.#local.release(key, member)
    return 1
  }

  ready(): boolean {
    return true
  }

  whenReady(): () => void {
    return () => {}
  }

  refusal(): string | undefined {
    return undefined
  }

  renew(): void {}

  async close(): Promise<void> {}
}

/** The options of a fake limiter: those of a limiter, with `limits`, and without a server. */
export type FakeOptions<R> = Partial<LimiterOptions<R>> & {
  limits: string | string[]
  /** For how many milliseconds the breaker stays open: 1,000 by default. */
  pauseMs?: number
}

/** A limiter that decides in the process, in a time that only the test moves. It fits wherever a Limiter does. */
export class FakeLimiter<R = unknown> extends Limiter<R> {
  readonly #backend: FakeBackend
  readonly #clock: { ms: number }

  constructor(options: FakeOptions<R>) {
    const clock = { ms: 1_800_000_000_000 }
    const now = (): number => clock.ms
    const backend = new FakeBackend(new LocalLimiter([options.limits].flat().map((text) => parseClause(text))), now)
    super({ onUnavailable: 'deny', denialCacheMs: 0, ...options, now }, { backend, breaker: new Breaker(), pauseMs: () => options.pauseMs ?? 1000 })
    this.#backend = backend
    this.#clock = clock
  }

  /** The calls that the server would have had. */
  get calls(): readonly Request[] {
    return this.#backend.calls
  }

  /** How often the server was called, also while it is away. */
  get asked(): number {
    return this.#backend.asked
  }

  /** Moves the time on. */
  advance(seconds: number): void {
    this.#clock.ms += seconds * 1000
  }

  /** Takes the server away: what follows is decided by `onUnavailable`. */
  goAway(): void {
    this.#backend.away = true
  }

  /** Brings the server back. */
  comeBack(): void {
    this.#backend.away = false
  }
}
