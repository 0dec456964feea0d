import { formatDuration } from '../common/duration.ts'
import type { RuleState } from '../decision/rule-state.ts'
import type { Engine } from '../engine/engine.ts'
import { DianaError } from '../errors.ts'
import type { RedisCounter } from '../stores/redis/counter.ts'
import { type InspectedLedger, type NamedCounter, readLedger } from '../stores/redis/read-ledger.ts'
import { scan } from '../stores/redis/scan.ts'
import { evaluate, scriptOf } from '../stores/redis/script/evaluate-script.ts'
import { inspect as inspectScript } from '../stores/redis/script/generated.ts'

const SCRIPT = scriptOf(inspectScript)

/** Reads the ledgers of Redis that a key or a pattern names, at most `most`; the rules in force name their limits. */
export async function inspectLedgers(engine: Engine, pattern: string, most: number): Promise<InspectedLedger[]> {
  const { send } = engine.options
  if (send === undefined) {
    throw new DianaError('BAD_CALL', 'there is no Redis to read: the rules need a store, such as store: { redis: … }')
  }
  const names: string[] = []
  if (!/[*?[]/.test(pattern) || pattern.endsWith('{*}')) names.push(pattern)
  else {
    await scan([send], pattern, found => {
      names.push(...found.filter(name => name.includes('{') && !names.includes(name)).slice(0, most - names.length))
      return names.length < most
    })
  }
  const counted = engine.decider.rules.flatMap(countedOf)
  const ledgers: InspectedLedger[] = []
  for (const name of names) {
    const reply = await evaluate(send, SCRIPT, [name], [])
    // other programs have keys, and so have other parts of Diana
    if (!Array.isArray(reply)) continue
    const [text, ttl, now] = reply.map(String) as [string, string, string]
    const ledger = readLedger(name, JSON.parse(text) as unknown[], Number(ttl), Number(now), counted)
    if (ledger) ledgers.push(ledger)
  }
  return ledgers
}

/** Returns the counters of a rule: one for each of its limits, and that of the callers that it blocks. */
function countedOf(state: RuleState): NamedCounter[] {
  const of = ({ rule, counter }: RuleState): NamedCounter[] => {
    if (counter === undefined) return []
    return [{ counter: counter as RedisCounter, id: rule.id, texts: rule.limits.map(limitText) }]
  }
  const blocks = state.blocks?.counter as RedisCounter | undefined
  const blocked = blocks ? [{ counter: blocks, id: state.rule.id, texts: ['block'] }] : []
  return [...of(state), ...[...(state.plans?.others ?? [])].flatMap(of), ...blocked]
}

function limitText({ count, periodMs, unit }: RuleState['rule']['limits'][number]): string {
  return periodMs === 0 ? String(count) : `${count}/${unit ?? formatDuration(periodMs)}`
}
