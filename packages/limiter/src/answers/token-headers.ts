import type { Decision } from '../verdict.ts'
import { type HeaderSink, isUnnamed, type Limits, resetMs, whole } from './draft-11.ts'

const TOKENS = 'tokens'

/** Writes the headers by which clients of LLM APIs slow down: the tightest limit on calls, and the tightest on tokens. */
export function writeTokenHeaders<Reply>({ decisions, answer }: Limits, sink: HeaderSink<Reply>, reply: Reply): void {
  const write = (kind: string, counts: (decision: Decision) => boolean): void => {
    const tightest = tightestLimit({ decisions: decisions.filter(counts), answer })
    if (tightest === undefined) return
    sink.setHeader(reply, `X-RateLimit-Limit-${kind}`, `${whole(tightest.limit)}`)
    sink.setHeader(reply, `X-RateLimit-Remaining-${kind}`, `${whole(tightest.remaining)}`)
    const ms = resetMs(tightest)
    if (ms !== Number.POSITIVE_INFINITY) sink.setHeader(reply, `X-RateLimit-Reset-${kind}`, resetText(ms))
  }
  write('Requests', ({ unit, periodMs }) => unit === undefined && periodMs > 0)
  write('Tokens', ({ unit }) => unit === TOKENS)
}

/** As these clients parse it: `120ms`, `1s`, `6m0s`, `1h30m0s`. */
export function resetText(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)}ms`
  const seconds = Math.ceil(ms / 1000)
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)]
  const parts = hours > 0 ? `${hours}h${minutes}m` : minutes > 0 ? `${minutes}m` : ''
  return `${parts}${seconds % 60}s`
}

/** Finds the limit with least left, of those that refuse, or else of all; of equals, the one that takes longest. */
export function tightestLimit({ decisions }: Limits): Decision | undefined {
  let tightest: Decision | undefined
  for (const decision of decisions) {
    if (!isUnnamed(decision) && (tightest === undefined || isTighter(decision, tightest))) tightest = decision
  }
  return tightest
}

function isTighter(one: Decision, other: Decision): boolean {
  if (one.allowed !== other.allowed) return other.allowed
  if (one.remaining !== other.remaining) return one.remaining < other.remaining
  return resetMs(one) > resetMs(other)
}
