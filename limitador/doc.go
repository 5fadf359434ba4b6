// Package limitador has the rules of Limitador, the rate limiter of Kuadrant, without a protocol.
//
// [Load] makes a [Config] of a limits file. Each [Limit] has a policy, whose name depends only on the limit. A front
// decodes a [Request], and [Config.Plan] says which calls of policies it stands for. A decision service decides the
// calls at one instant: all are charged or none. [Plan.Answer] then makes the [Answer] of the decisions, which the
// front encodes. The package neither decides nor counts, and has no clock.
//
// These differ from Limitador, which has accidents there: a limit whose variables look at a descriptor that is not
// there does not apply, and neither does one whose conditions do; a window begins with the first call that it
// counts, and its reset is told in the answer to that call, too.
package limitador
