import { type Backend, type Waiting } from './backend.js'
import { type Ticket } from './breaker.js'
import { errorOf, FaultError } from './connection.js'
import { Late, type Deadlines } from './deadlines.js'
import { readReply, type Decision, type Result } from './result.js'
import { retries } from './verdict.js'
import { type Config, type Request } from './wire.js'

/** The limiter of a call. */
export interface Asker {
  readonly config: Config
  readonly backend: Backend
  readonly deadlines: Deadlines
  answered(request: Request, ticket: Ticket, decision: Decision): Result
  /** Returns the result of a call without a decision. It throws if the error is a fault of the program. */
  failed(request: Request, ticket: Ticket, error: Error): Result | Promise<Result>
  /** Is told a decision that has come after its deadline. */
  tooLate(request: Request, decision: Decision): void
}

/** A call of the server, from when it is sent until it has a result. One object serves for all of it. */
export class Asking extends Late implements Waiting {
  readonly #asker: Asker
  readonly #request: Request
  readonly #ticket: Ticket
  readonly #resolve: (result: Result | Promise<Result>) => void
  readonly #reject: (error: unknown) => void
  words: string[] = []
  #again = false
  #forget: (() => void) | undefined

  constructor(asker: Asker, request: Request, ticket: Ticket, resolve: (result: Result | Promise<Result>) => void, reject: (error: unknown) => void) {
    super()
    this.#asker = asker
    this.#request = request
    this.#ticket = ticket
    this.#resolve = resolve
    this.#reject = reject
  }

  /** Sends the call. ms is what is left of the deadline, if that is not all of it. */
  begin(ms?: number): void {
    if (!this.#asker.backend.ready()) return this.#fail(new FaultError('refused'))
    this.#asker.deadlines.add(this, ms)
    return this.#send()
  }

  expire(busy: boolean): void {
    this.#forget?.()
    this.#fail(new FaultError('timeout', busy))
  }

  decided(decision: Decision): void {
    if (!this.#asker.deadlines.remove(this)) return this.#asker.tooLate(this.#request, decision)
    return this.#resolve(this.#asker.answered(this.#request, this.#ticket, decision))
  }

  replied(reply: unknown): void {
    let decision: Decision
    try {
      decision = readReply(reply)
    } catch (error) {
      return this.failed(error)
    }
    return this.decided(decision)
  }

  failed(reason: unknown): void {
    const error = errorOf(reason)
    if (error instanceof FaultError && !this.#again && this.live && retries(error.fault, this.#request.id !== undefined)) {
      this.#again = true
      if (this.#asker.backend.ready()) this.#send()
      else this.#forget = this.#asker.backend.whenReady(() => this.#send())
    } else if (this.#asker.deadlines.remove(this)) this.#fail(error)
  }

  #send(): void {
    if (!this.live) return // its caller has gone: it must not be charged
    this.#asker.backend.decide(this.#asker.config, this.#request, this)
  }

  #fail(error: Error): void {
    try {
      this.#resolve(this.#asker.failed(this.#request, this.#ticket, error))
    } catch (fault) {
      this.#reject(fault)
    }
  }
}
