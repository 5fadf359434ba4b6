/** What answers calls: a server, or a double in tests. */

import { type Breaker } from './breaker.js'
import { type Connection, type Sent } from './connection.js'
import { type Decision } from './result.js'
import { callWords, type Config, type Request } from './wire.js'

/** A call that waits for its decision: a server replies to its words, and a double decides. */
export interface Waiting extends Sent {
  decided(decision: Decision): void
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

export class ServerBackend implements Backend {
  constructor(readonly connection: Connection) {}

  decide(config: Config, request: Request, waiting: Waiting): void {
    waiting.words = callWords(config, request)
    this.connection.send(waiting)
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
