import type { JointCall, Limiter, Verdict } from 'diana-limiter'
import { decideWithin } from '../calls/decide-within.ts'
import { endUnreported } from '../calls/end-unreported.ts'
import type { GrpcContext, UnaryMethod } from '../grpc/grpc-method.ts'
import { DescriptorCall } from './descriptor-call.ts'
import { type Overrides, overrideCall } from './overrides.ts'
import { type Descriptor, type RateLimitRequest, readRateLimitRequest } from './rate-limit-request.ts'
import { writeRateLimitResponse } from './rate-limit-response.ts'

export interface RateLimitServiceParts {
  readonly limiter: Limiter
  readonly overrides: Overrides
  /** A call that would wait longer than this is refused. */
  readonly deadlineMs: () => number
}

/** Serves Envoy's rate limit service, version 3: its descriptors are decided together, so that a refusal counts nothing. */
export function rateLimitService(parts: RateLimitServiceParts): UnaryMethod {
  return {
    kind: 'unary',
    path: '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
    answer: (message, context) => {
      const verdicts = decide(readRateLimitRequest(message), context, parts)
      return verdicts instanceof Promise ? verdicts.then(respond) : respond(verdicts)
    },
  }
}

function respond(verdicts: readonly Verdict[]): Buffer {
  for (const verdict of verdicts) endUnreported(verdict)
  return writeRateLimitResponse(verdicts, Date.now())
}

function decide(
  { domain, descriptors, hits }: RateLimitRequest,
  context: GrpcContext,
  { limiter, overrides, deadlineMs }: RateLimitServiceParts,
): readonly Verdict[] | Promise<readonly Verdict[]> {
  const [only] = descriptors
  if (descriptors.length > 1 || only!.limit !== undefined || only!.hits === 0) {
    return limiter.decideTogether(descriptors.map(one => jointCall(domain, one, one.hits ?? hits, overrides)))
  }
  const call = new DescriptorCall(domain, only!)
  const options = { cost: only!.hits ?? hits, waitMs: deadlineMs(), signal: () => context.signal() }
  const verdict = decideWithin(limiter, call, options)
  return verdict instanceof Promise ? verdict.then(one => [one]) : [verdict]
}

function jointCall(domain: string, descriptor: Descriptor, cost: number, overrides: Overrides): JointCall {
  const rule = descriptor.limit && overrides.ruleFor(descriptor.limit)
  if (rule !== undefined) return { call: overrideCall(domain, descriptor), cost, rule, only: true }
  return { call: new DescriptorCall(domain, descriptor), cost }
}
