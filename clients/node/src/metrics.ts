import { type Meter } from './options.js'
import { type Result } from './result.js'

/** The metrics of a limiter. No key is a label. */
export class Instruments {
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
