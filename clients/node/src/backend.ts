/** What answers calls: a server, or a double in tests. */

import { type Breaker } from './breaker.js'
import { type Connection, type Sent } from './connection.js'
import { readReply, type Decision } from './result.js'
import { callWords, type Config, type Request } from './wire.js'

/** A call that waits for its decision. */
export interface Waiting {
  /** Whether the caller still waits: a call that does not wait any more is not sent. */
  readonly live: boolean
  decided(decision: Decision): void
  /** Is told an error of the client's own: see errorOf. */
  refused(error: unknown): void
}

export interface Backend {
  /** Asks for a decision. */
  decide(config: Config, request: Request, waiting: Waiting): void
  /** Sends another command. It rejects with an error of the client's own. */
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

/** A call on a connection. */
class ServerCall implements Sent {
  constructor(readonly words: string[], readonly waiting: Waiting) {}

  get live(): boolean {
    return this.waiting.live
  }

  replied(reply: unknown): void {
    let decision: Decision
    try {
      decision = readReply(reply)
    } catch (error) {
      return this.waiting.refused(error)
    }
    return this.waiting.decided(decision)
  }

  failed(error: unknown): void {
    this.waiting.refused(error)
  }
}

export class ServerBackend implements Backend {
  constructor(readonly connection: Connection) {}

  decide(config: Config, request: Request, waiting: Waiting): void {
    this.connection.send(new ServerCall(callWords(config, request), waiting))
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
