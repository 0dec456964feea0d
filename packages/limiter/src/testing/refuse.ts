import type { Call } from '../call.ts'
import { assertLimiter } from '../common/assert-limiter.ts'
import { engineOf } from '../engine/engine-of.ts'
import { DianaError } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import type { Decision, Verdict } from '../verdict.ts'

/** The refusals that a test asks of a limiter. */
export interface RefuseOptions {
  /** The rule that refuses, by its id; left out, the first one. */
  readonly rule?: string | undefined
  /** The time after which callers may try again; default 1000. */
  readonly retryAfterMs?: number | undefined
  /** The calls that are refused; left out, all. */
  readonly when?: ((call: Call) => boolean) | undefined
}

/**
 * Lets a limiter refuse calls without their being counted, as a rule whose limit is reached, until the function is called that it
 * returns: for tests of what an application does with a refusal.
 */
export function refuseAll(limiter: Limiter, options: RefuseOptions = {}): () => void {
  assertLimiter(limiter, 'refuseAll')
  const { rule = limiter.rules[0]?.id, retryAfterMs = 1000, when = () => true } = options
  if (rule !== undefined && !limiter.rules.some(({ id }) => id === rule)) {
    throw new DianaError('BAD_CALL', `refuseAll: there is no rule "${rule}"`)
  }
  const decide = limiter.decide.bind(limiter)
  const own = (call: Call, given?: Parameters<Limiter['decide']>[1]): Verdict | Promise<Verdict> => {
    if (!when(call)) return decide(call, given)
    const looked = engineOf(limiter).decider.look(call, 1, engineOf(limiter).now(), given)
    const refused = (verdict: Verdict): Verdict => asRefused(verdict, rule, retryAfterMs)
    return looked instanceof Promise ? looked.then(refused) : refused(looked)
  }
  Object.defineProperty(limiter, 'decide', { value: own, configurable: true })
  return () => {
    if (limiter.decide === own) delete (limiter as Partial<Limiter>).decide
  }
}

/** Returns the verdict that a rule at its limit would give. */
function asRefused(verdict: Verdict, rule: string | undefined, retryAfterMs: number): Verdict {
  const decisions = verdict.decisions.map((one): Decision => {
    return one.rule === rule ? { ...one, allowed: false, remaining: 0, retryAfterMs, resetAfterMs: retryAfterMs } : one
  })
  const { answer } = verdict
  const refused = {
    allowed: false,
    rule,
    reason: 'limit',
    waitMs: 0,
    retryAfterMs,
    decisions,
    answer,
    holds: false,
  } as const
  return { ...refused, refund: () => decisions, end: () => {}, release: () => {}, settle: () => {} }
}

/** Forgets all that a limiter has counted in this process, of all rules and callers: between tests that share one. */
export async function resetAll(limiter: Limiter): Promise<void> {
  assertLimiter(limiter, 'resetAll')
  const { decider, shared } = engineOf(limiter)
  for (const state of decider.rules) {
    for (const { table, counter } of [state, ...(state.plans?.others ?? []), ...(state.blocks ? [state.blocks] : [])]) {
      const keys = new Set([...table.entries()].map(([key]) => key))
      if (counter) for (const key of await shared.keys(counter, table, MOST_KEYS)) keys.add(key)
      // the key of all calls together is among the entries only if it is a key of its own
      for (const key of keys.add('')) {
        table.reset(key)
        if (counter) await shared.reset(counter, key)
      }
    }
  }
}

/** More callers than a test has. */
const MOST_KEYS = 10_000
