import { describeKey, type Limiter, maskCaller, type RefusedCaller } from 'diana-limiter'
import type { Logger } from 'pino'

const everyMs = 1000
const mostRules = 10_000

/**
 * Logs refusals, the first one of each rule in a second, with how many went unsaid since its last line; callers are masked.
 * Returns what ends it.
 */
export function logRefusals(
  limiter: Pick<Limiter, 'observe'>,
  logger: Pick<Logger, 'info'>,
  now: () => number = Date.now,
): () => void {
  const rules = new Map<string, { saidAt: number; unsaid: number }>()
  return limiter.observe({
    onRefusal: refusal => {
      const known = rules.get(refusal.rule)
      const at = now()
      if (known && at - known.saidAt < everyMs) {
        known.unsaid++
        return
      }
      // rules come and go; what is forgotten is how many went unsaid
      if (!known && rules.size >= mostRules) rules.clear()
      rules.set(refusal.rule, { saidAt: at, unsaid: 0 })
      logger.info({ rule: refusal.rule, caller: maskKey(refusal), unsaid: known?.unsaid ?? 0 }, 'refused')
    },
  })
}

function maskKey({ key, by }: RefusedCaller): Record<string, string> {
  return Object.fromEntries(Object.entries(describeKey(key, by)).map(([name, { value }]) => [name, maskCaller(value)]))
}
