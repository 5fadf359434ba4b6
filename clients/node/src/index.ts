/**
 * Rate limiting by cellserver. A {@link Limiter} asks a server whether a call may go ahead: one round trip, an answer within a
 * deadline whatever happens to the server, and 429 and 503 kept apart.
 */
export { Limiter } from './limiter.js'
export { ConfigurationError, type CallOptions, type LimiterOptions, type Log, type Meter, type OnUnavailable, type Reservation } from './options.js'
export { combine, header, ip, type KeyOf, type View } from './keys.js'
export { type AddressOptions } from './address.js'
export { type Field, type HeaderStyle, type Problem } from './headers.js'
export { type Numbers, type Place, type Result, type Source } from './result.js'
export { ServerError, type IoredisClient, type NodeRedisClient } from './connection.js'
