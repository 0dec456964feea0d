import { Decider } from '../decision/decider.ts'
import { countsQuickly } from '../decision/quick-pass.ts'
import type { Receipt } from '../decision/receipt.ts'
import { CallersInQueue } from '../decision/rule-state.ts'
import { Tally } from '../stats/tally.ts'
import { MemoryStore } from '../stores/memory/memory-store.ts'
import { compileRule } from './compile-rule.ts'
import type { TimelineRule } from './timeline.ts'

/** Creates a decider with rules counted in this process, named `rule-0`, `rule-1` and so on. */
export function createTestDecider(
  options: readonly TimelineRule[],
  onRelease: (receipts: readonly Receipt[]) => void = () => {},
): Decider {
  const store = new MemoryStore()
  const rules = options.map((rule, i) => {
    const compiled = compileRule(rule, { id: `rule-${i}` })
    const table = store.createTable(compiled.id, compiled.meters)
    const tally = new Tally(compiled.meters.length)
    return {
      rule: compiled,
      match: compiled.match,
      table,
      counter: undefined,
      isQuick: countsQuickly({ rule: compiled }),
      plans: undefined,
      waiting: 0,
      callers: new CallersInQueue(),
      tally,
    }
  })
  return new Decider({ rules, store, answer: { status: 503, headers: 'draft-11' }, onRelease, now: () => 0 })
}
